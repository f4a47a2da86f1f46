"""Plain answers of every route pass to the byte, are counted, and are what the route answers."""

import gzip
import json
import zlib
from typing import Any

import pytest

from gateway.routes import BY_TEMPLATE, OF_ENGINES
from tests.fake_engine import answers, dialects, scripts
from tests.fake_engine.handle import FakeEngine
from tests.relay.calls import MODEL, called
from tests.running import Gateway, wait_for

pytestmark = pytest.mark.usefixtures("leaves_nothing_behind")

OPENAI = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
POOLED = {"prompt_tokens": 7, "total_tokens": 7}
METADATA = {"id": "pool-1", "model": MODEL, "data": [{"index": 0, "shape": [3], "start": 0}], "usage": POOLED}
USAGES: dict[str, Any] = {
    "/v1/chat/completions": OPENAI,
    "/v1/completions": OPENAI,
    "/v1/responses": dialects.RESPONSE_COUNTS,
    "/v1/messages": dialects.MESSAGE_COUNTS,
    "/v1/rerank": {"total_tokens": 7},
    "/v1/audio/transcriptions": {"type": "duration", "seconds": 9},
    "/v1/audio/translations": OPENAI,
}
COUNTED = {
    **dict.fromkeys(OF_ENGINES, (7, 0)),
    **dict.fromkeys(("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"), (7, 2)),
    "/v1/audio/translations": (7, 2),
    **dict.fromkeys(("/v1/messages/count_tokens", "/tokenize", "/detokenize"), (0, 0)),
    "/v1/audio/transcriptions": None,
}  # fmt: skip


SENT = {"host", "content-type", "content-length", "accept", "accept-encoding", "x-request-id"}


async def tokens(gateway: Gateway) -> tuple[float, float]:
    """Prompt and completion tokens counted until now."""
    return (
        await gateway.metric("gateway_tokens_total", kind="prompt"),
        await gateway.metric("gateway_tokens_total", kind="completion"),
    )


async def counted(gateway: Gateway, before: tuple[float, float], counts: tuple[int, int] | None) -> None:
    """Wait until the request is counted, when its answer is out; None: by an estimate of its prompt."""

    async def so() -> bool:
        prompt, completion = await tokens(gateway)
        if counts is None:
            return prompt > before[0]
        return (prompt - before[0], completion - before[1]) == counts

    await wait_for(so)


@pytest.mark.parametrize("route", OF_ENGINES)
async def test_an_answer_passes_to_the_byte_and_is_counted(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """Unknown members, numbers that are no JSON, no `model`: bytes are bytes on every route."""
    usage = json.dumps(USAGES.get(route, POOLED))
    body = (
        b'{"zzz": 1.0,\n "logprobs":[-Infinity, NaN], "choices": [], "usage": %b, "x":null}' % usage.encode()
    )
    before = await tokens(gateway)
    await fake_engine.script(scripts.answer(body), path=route)
    answer = await called(gateway, route)
    assert (answer.status_code, answer.content) == (200, body)
    assert answer.headers["content-type"] == "application/json"
    await counted(gateway, before, COUNTED[route])
    [seen] = await fake_engine.requests(route)
    assert seen.method == "POST"
    assert {name.lower() for name, _ in seen.headers} == SENT


NOT_ANSWERS = {
    "a page": scripts.answer("<html>login</html>", content_type="text/html"),
    "a page as json": scripts.answer(" <html>login</html>"),
    "nothing": scripts.answer(b""),
    "a word": scripts.answer("OK"),
    "half of it": [
        scripts.send(answers.head(200, [("content-type", "application/json")]) + b'{"a":1'),
        {"close": True},
    ],
    "no type": [scripts.send(answers.head(200, [("content-length", "2")]) + b"{}")],
    "another good status": scripts.answer("{}", status=202),
    "no content": scripts.no_content(),
}


@pytest.mark.parametrize("route", OF_ENGINES)
async def test_what_is_no_answer_of_the_route_is_a_502(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """A proxy's page, an empty body, a mere word: a client would take it for an answer."""
    for name, script in NOT_ANSWERS.items():
        await fake_engine.script(script, path=route, times=1)
        answer = await called(gateway, route)
        assert answer.status_code == 502, name
        assert "login" not in answer.text
        error = answer.json()["error"]
        assert error.get("code", error["type"]) in ("engine_error", "api_error")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [1, 100_000])
async def test_a_compressed_answer_arrives_readable(
    gateway: Gateway, fake_engine: FakeEngine, coding: str, size: int
) -> None:
    """Though it was asked for as it is: to who takes compressed answers and who does not, errors too."""
    pack = gzip.compress if coding == "gzip" else zlib.compress
    body = json.dumps({"x": "y" * size, "usage": OPENAI}).encode()
    refused = json.dumps({"error": {"message": "bad temperature", "param": "temperature"}}).encode()
    before = await tokens(gateway)
    for status, content in ((200, body), (400, refused)):
        headers = [("content-encoding", coding)]
        await fake_engine.script(scripts.answer(pack(content), status=status, headers=headers), times=2)
        for accepted in ("gzip, deflate, br", "identity"):
            answer = await called(gateway, "/v1/chat/completions", accept=accepted)
            assert answer.status_code == status
            assert "content-encoding" not in answer.headers
            if status == 200:
                assert answer.content == body
            else:
                assert answer.json()["error"]["message"] == "bad temperature"
    await counted(gateway, before, (14, 4))


@pytest.mark.parametrize("coding", ["gzip", "br"])
async def test_what_cannot_be_unpacked_is_a_502(
    gateway: Gateway, fake_engine: FakeEngine, coding: str
) -> None:
    """Not what it says, cut off, or compressed as nobody asked; a stream cannot be read along at all."""
    headers = [("content-encoding", coding)]
    for content in (b'{"a": 1}', gzip.compress(b'{"a": 1}' * 100)[:-9], b""):
        await fake_engine.script(scripts.answer(content, headers=headers), times=1)
        assert (await called(gateway, "/v1/chat/completions")).status_code == 502
    head = scripts.send(answers.stream_head(headers) + answers.chunk(gzip.compress(b"data: {}\n\n")))
    await fake_engine.script([head, scripts.send(answers.chunk(b""))])
    assert (await called(gateway, "/v1/chat/completions", stream=True)).status_code == 502


@pytest.mark.parametrize("route", OF_ENGINES)
async def test_an_event_stream_on_a_route_without_streams_is_a_502(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """Where there are streams it passes."""
    await fake_engine.script(scripts.events([b"data: [DONE]\n\n"]), path=route)
    assert (await called(gateway, route)).status_code == (200 if BY_TEMPLATE[route].streams else 502)


@pytest.mark.parametrize(
    ("route", "content_type"),
    [
        ("/v1/embeddings", "application/octet-stream"), ("/pooling", "application/octet-stream"),
        ("/v1/audio/transcriptions", "text/plain; charset=utf-8"), ("/v1/audio/transcriptions", "text/vtt"),
        ("/v1/audio/translations", "application/x-subrip"),
    ],
)  # fmt: skip
async def test_other_kinds_of_answers_pass_as_they_are(
    gateway: Gateway, fake_engine: FakeEngine, route: str, content_type: str
) -> None:
    """Bytes and texts with their own type; what describes them beside them counts, else it is estimated."""
    body = b'\x00\xffWEBVTT "usage": {"prompt_tokens": 99, "completion_tokens": 99} \r\n'
    headers = [("metadata", json.dumps(METADATA)), ("x-engine", "secret"), ("set-cookie", "a=b")]
    before = await tokens(gateway)
    await fake_engine.script(scripts.answer(body, content_type=content_type, headers=headers), path=route)
    answer = await called(gateway, route)
    assert (answer.status_code, answer.content) == (200, body)
    assert answer.headers["content-type"] == content_type
    assert {"x-engine", "set-cookie"}.isdisjoint(answer.headers)
    described = content_type == "application/octet-stream"
    assert answer.headers.get("metadata") == (json.dumps(METADATA) if described else None)
    await counted(gateway, before, (7, 0) if described else None)


async def test_a_caller_cannot_count_for_the_engine(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """A response repeats its tools and messages, which may well hold a `usage`; the engine's own counts."""
    own = {"usage": {"input_tokens": 1, "output_tokens": 1}}
    answer = {**dialects.response("x", usage=dialects.RESPONSE_COUNTS), "input_messages": [own]}
    before = await tokens(gateway)
    await fake_engine.script(scripts.answer(json.dumps(answer)))
    assert (await called(gateway, "/v1/responses")).json() == answer
    await counted(gateway, before, (7, 2))


@pytest.mark.parametrize("first", [False, True])
async def test_a_model_cannot_count_for_the_engine(
    gateway: Gateway, fake_engine: FakeEngine, *, first: bool
) -> None:
    """A tool's input is an object in a message, and may hold a `usage`, before the engine's own or after."""
    tool = {
        "type": "tool_use",
        "id": "1",
        "name": "f",
        "input": {"usage": {"input_tokens": 1, "output_tokens": 1}},
    }
    members = {"content": [tool], "usage": dialects.MESSAGE_COUNTS}
    answer = {"type": "message", **{name: members[name] for name in sorted(members, reverse=first)}}
    before = await tokens(gateway)
    await fake_engine.script(scripts.answer(json.dumps(answer)))
    assert (await called(gateway, "/v1/messages")).json() == answer
    await counted(gateway, before, (7, 2))


@pytest.mark.parametrize("model", [MODEL, "thinker"])
async def test_reasoning_has_its_older_name_too_where_the_operator_wants_it(
    gateway: Gateway, fake_engine: FakeEngine, model: str
) -> None:
    """In a plain answer and in a stream's chunks; elsewhere, and by default, nothing changes."""
    message = '{"reasoning":"I \\"think\\"","content":"x"}'
    twice = message.replace(',"content"', ',"reasoning_content":"I \\"think\\"","content"')
    wanted = twice if model == "thinker" else message
    plain = f'{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}'
    chunk = f'data: {{"choices":[{{"index":0,"delta":{message},"finish_reason":null}}]}}\n\n'
    await fake_engine.script(scripts.answer(plain), times=1)
    answer = await called(gateway, "/v1/chat/completions", model=model)
    assert answer.text == plain.replace(message, wanted)
    await fake_engine.script(scripts.events([chunk.encode(), b"data: [DONE]\n\n"], split=9), times=1)
    answer = await called(gateway, "/v1/chat/completions", model=model, stream=True)
    assert answer.text == chunk.replace(message, wanted) + "data: [DONE]\n\n"
    await fake_engine.script(scripts.answer(plain), times=1)
    assert (await called(gateway, "/v1/messages", model=model)).text == plain
