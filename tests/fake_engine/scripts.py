"""Ready scripts: lists of steps for `FakeEngine.script`. The package's docstring tells what a step does."""

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from tests.fake_engine import answers

MODEL = "fake-model"

Step = dict[str, Any]
Steps = list[Step]
End = Literal["done", "no_done", "close", "reset", "hang"]


def send(data: bytes, *, split: int = 0, pace: float = 0.0) -> Step:
    """Write these bytes as they are."""
    return {"send_b64": base64.b64encode(data).decode(), "split": split, "pace": pace}


def answer(
    body: bytes | str = b"",
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: answers.Pairs = (),
) -> Steps:
    """A whole response."""
    data = body.encode() if isinstance(body, str) else body
    return [send(answers.whole(data, status=status, content_type=content_type, headers=headers))]


def chat(text: str = "Hello.", *, tokens: int = 2, model: str = MODEL) -> Steps:
    """A plain chat completion."""
    return answer(json.dumps(answers.completion(model, text, tokens)))


def error(status: int, message: str, *, param: str | None = None, headers: answers.Pairs = ()) -> Steps:
    """An error in vLLM's shape, its integer `code` included."""
    document = {"error": {"message": message, "type": "BadRequestError", "param": param, "code": status}}
    return answer(json.dumps(document), status=status, headers=headers)


def stream(
    events: int = 5,
    *,
    pace: float = 0.0,
    gate: str = "",
    usage: bool = True,
    end: End = "done",
    model: str = MODEL,
) -> Steps:
    """A chat stream of so many content events, each written by itself, `pace` seconds apart.

    With a `gate` each event waits for it. `end`: "done" is whole; "no_done" lacks `[DONE]` but ends the
    body properly; "close", "reset" and "hang" come right after the last content event instead of the rest.
    """
    opening, *said = answers.events(model, events, with_usage=usage)
    content, rest = said[:events], said[events:]
    steps = [send(answers.stream_head() + answers.chunk(opening))]
    for event in content:
        steps += [{"gate": gate}] if gate else []
        steps.append(send(answers.chunk(event), pace=pace))
    if end in ("close", "reset", "hang"):
        return [*steps, {end: True}]
    return [*steps, *chunks([*rest, answers.DONE] if end == "done" else rest), send(answers.chunk(b""))]


def events(documents: Iterable[bytes], *, split: int = 0) -> Steps:
    """An event stream of exactly these bytes, each item in a chunk of its own, the body ended properly."""
    return [send(answers.stream_head()), *chunks(documents, split=split), send(answers.chunk(b""))]


def chunks(parts: Iterable[bytes], *, split: int = 0) -> Steps:
    """Each part in a chunk of its own."""
    return [send(answers.chunk(part), split=split) for part in parts if part]


def html_502() -> Steps:
    """What a proxy between us and the engine answers when it has lost it."""
    return answer("<html><body><h1>502 Bad Gateway</h1></body></html>", status=502, content_type="text/html")


def loading() -> Steps:
    """A server that listens while its model is loading."""
    return error(503, "Loading model")


def models(*names: str, **more: Any) -> Steps:
    """The list of models, for path="/v1/models"; with `more` in each of them."""
    entries = [{"id": name, "object": "model", "owned_by": "vllm", **more} for name in names]
    return answer(json.dumps({"object": "list", "data": entries}))


def after(seconds: float, steps: Sequence[Step]) -> Steps:
    """A slow first byte."""
    return [{"sleep": seconds}, *steps]


def gated(name: str, steps: Sequence[Step]) -> Steps:
    """A first byte that waits for the test."""
    return [{"gate": name}, *steps]


def interim(steps: Sequence[Step]) -> Steps:
    """Interim responses before the real one."""
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    return [send(b"HTTP/1.1 100 Continue\r\n\r\n"), send(early), *steps]


def no_content(status: int = 204) -> Steps:
    """A status that has no body, with headers that promise one."""
    return [send(answers.head(status, [("content-type", "text/plain"), ("content-length", "5")]))]


def with_trailers(body: bytes) -> Steps:
    """A chunked body with extensions and trailers."""
    first = b"%x;name=value\r\n%b\r\n" % (len(body), body)
    return [send(answers.stream_head() + first + b"0\r\nx-trailer: 1\r\ncontent-type: text/evil\r\n\r\n")]


def until_close(body: bytes, end: Literal["close", "reset"] = "close") -> Steps:
    """A body that ends with the connection."""
    return [send(answers.head(200, [("content-type", "text/plain")]) + body), {end: True}]


def oversize_head(head_bytes: int, *, split: int = 0) -> Steps:
    """A head of exactly so many bytes, most of them in one header, and a body of two."""
    empty = answers.head(200, [("content-length", "2"), ("x-padding", "")])
    padding = "x" * (head_bytes - len(empty))
    return [send(answers.head(200, [("content-length", "2"), ("x-padding", padding)]) + b"ok", split=split)]


def garbage() -> Steps:
    """Nothing that HTTP knows."""
    return [send(b"\x16\x03\x01 this is no HTTP\r\n\r\n"), {"close": True}]


def then_byte(steps: Sequence[Step], gate: str = "byte") -> Steps:
    """A byte on the idle connection, once the gate is opened."""
    return [*steps, {"gate": gate}, send(b"X"), {"hang": True}]


def then_eof(steps: Sequence[Step], gate: str = "eof") -> Steps:
    """The end of the idle connection, once the gate is opened."""
    return [*steps, {"gate": gate}, {"close": True}]
