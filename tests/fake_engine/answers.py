"""What the small vLLM answers: bodies and events in the shapes of the real one. No sockets here."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.fake_engine.wire import Request

CREATED = 1_700_000_000
DEFAULT_TOKENS = 5
PROMPT_TOKENS = 7
DONE = b"data: [DONE]\n\n"

Pairs = Sequence[tuple[str, str]]


def whole(
    body: bytes, *, status: int = 200, content_type: str = "application/json", headers: Pairs = ()
) -> bytes:
    """A response with a Content-Length."""
    fields = [("content-type", content_type), *headers, ("content-length", str(len(body)))]
    return head(status, fields) + body


def head(status: int, headers: Pairs) -> bytes:
    """A status line and headers, up to and with the empty line."""
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def stream_head(headers: Pairs = ()) -> bytes:
    """The head of a chunked event stream."""
    event_stream = ("content-type", "text/event-stream; charset=utf-8")
    return head(200, [event_stream, *headers, ("transfer-encoding", "chunked")])


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of nothing: the last one."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(document: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def usage(completion_tokens: int) -> dict[str, int]:
    """A usage object."""
    total = PROMPT_TOKENS + completion_tokens
    return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": completion_tokens, "total_tokens": total}


def completion(model: str, text: str, tokens: int, *, chat: bool = True) -> dict[str, Any]:
    """The answer to a call that does not stream."""
    content = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return {
        "id": "chatcmpl-fake" if chat else "cmpl-fake",
        "object": "chat.completion" if chat else "text_completion",
        "created": CREATED,
        "model": model,
        "choices": [{"index": 0, **content, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(tokens),
    }


def events(model: str, tokens: int, *, chat: bool = True, with_usage: bool = False) -> list[bytes]:
    """The events of a streamed answer, one for each token, without `[DONE]`."""
    found = [event(_piece(model, {"role": "assistant", "content": ""}, None))] if chat else []
    for number in range(tokens):
        content = {"content": f"tok{number} "} if chat else f"tok{number} "
        found.append(event(_piece(model, content, None)))
    found.append(event(_piece(model, {} if chat else "", "stop")))
    if with_usage:
        found.append(event({**_piece(model, {}, None), "choices": [], "usage": usage(tokens)}))
    return found


def reply(name: str, request: Request, models: Iterable[str]) -> bytes:
    """The named reply to a request."""
    if name == "echo":
        return whole(json.dumps(request.as_json()).encode())
    if name == "digest":
        digest = {"bytes": len(request.body), "sha256": hashlib.sha256(request.body).hexdigest()}
        return whole(json.dumps(digest).encode())
    if name == "gzip":
        return _maybe_compressed(request)
    return _as_engine(request, list(models))


def _as_engine(request: Request, models: list[str]) -> bytes:
    path = request.path
    if path == "/health":
        return whole(b"")
    if path == "/v1/models":
        entries = [{"id": name, "object": "model", "created": CREATED, "owned_by": "vllm"} for name in models]
        return whole(json.dumps({"object": "list", "data": entries}).encode())
    if request.method == "POST" and path in ("/v1/chat/completions", "/v1/completions"):
        return _completed(json.loads(request.body), models, chat=path.endswith("/chat/completions"))
    return _refused(404, "NotFoundError", "Not Found")


def _completed(body: Mapping[str, Any], models: list[str], *, chat: bool) -> bytes:
    model = body.get("model") or models[0]
    if model not in models:
        return _refused(404, "NotFoundError", f"The model `{model}` does not exist.", "model")
    tokens = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_TOKENS
    if not body.get("stream"):
        text = "".join(f"tok{number} " for number in range(tokens))
        return whole(json.dumps(completion(model, text, tokens, chat=chat)).encode())
    options = body.get("stream_options") or {}
    parts = events(model, tokens, chat=chat, with_usage=bool(options.get("include_usage")))
    return stream_head() + b"".join(map(chunk, [*parts, DONE, b""]))


def _refused(status: int, kind: str, message: str, param: str | None = None) -> bytes:
    error = {"message": message, "type": kind, "param": param, "code": status}
    return whole(json.dumps({"error": error}).encode(), status=status)


def _maybe_compressed(request: Request) -> bytes:
    body = b"".join([*events("fake-model", DEFAULT_TOKENS, with_usage=True), DONE])
    accepted = [value for name, value in request.headers if name.lower() == "accept-encoding"]
    if "gzip" not in ",".join(accepted):
        return stream_head() + chunk(body) + chunk(b"")
    return stream_head([("content-encoding", "gzip")]) + chunk(gzip.compress(body)) + chunk(b"")


def _piece(model: str, content: dict[str, str] | str, finish_reason: str | None) -> dict[str, Any]:
    chat = isinstance(content, dict)
    said = {"delta": content} if chat else {"text": content}
    return {
        "id": "chatcmpl-fake" if chat else "cmpl-fake",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": CREATED,
        "model": model,
        "choices": [{"index": 0, **said, "logprobs": None, "finish_reason": finish_reason}],
    }
