"""What an engine can do wrong, and what a caller then sees: no lie, no hang, nothing left behind."""

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from tests.fake_engine import answers, dialects, scripts
from tests.fake_engine.handle import FakeEngine
from tests.prompts import HELLO
from tests.relay.calls import MODEL, called, error_of, raw, stream_text
from tests.relay.conftest import sdk
from tests.running import Gateway, wait_for

pytestmark = pytest.mark.usefixtures("leaves_nothing_behind")


@pytest.mark.parametrize("end", ["close", "reset", "no_done_unfinished"])
async def test_a_stream_that_breaks_keeps_its_text_and_ends_with_an_error(
    gateway: Gateway, client: AsyncOpenAI, fake_engine: FakeEngine, end: str
) -> None:
    """FIN, RST or a clean end without the finish reason: the SDK raises, and no [DONE] is seen."""
    if end == "no_done_unfinished":
        script = scripts.events(answers.events(MODEL, 3)[:3])
    else:
        script = scripts.stream(3, end=end)  # type: ignore[arg-type]  # mypy sees a string
    await fake_engine.script(script)
    pieces: list[str] = []
    broken = await error_of(client, pieces)
    assert any(pieces)
    assert broken.code == "engine_error"
    assert broken.type == "server_error"
    body = (await raw(gateway, stream=True)).text
    assert "[DONE]" not in body
    assert body.endswith("}}\n\n")


async def test_an_engine_that_forgets_done_but_finished_is_complete(
    gateway: Gateway, client: AsyncOpenAI, fake_engine: FakeEngine
) -> None:
    """Every choice has its finish reason: nothing is added, nothing is raised."""
    await fake_engine.script(scripts.stream(3, end="no_done"))
    assert "".join([piece async for piece in stream_text(client)])
    assert "[DONE]" not in (await raw(gateway, stream=True)).text


async def test_a_half_written_event_is_closed_before_the_error(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """The error does not glue itself to a line that broke off."""
    half = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Par'
    await fake_engine.script([*scripts.events([half])[:2], {"close": True}])
    body = (await raw(gateway, stream=True)).text
    assert '"Par\n\ndata: {"error":' in body


async def test_the_engines_own_error_event_passes_as_it_is(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Its integer code included; the books call it an engine error."""
    before = await gateway.metric("gateway_requests_total", reason="engine_error")
    event = b'data: {"error": {"message": "boom", "code": 500}}\n\n'
    await fake_engine.script(scripts.events([event, b"data: [DONE]\n\n"]))
    assert (await raw(gateway, stream=True)).content == event + b"data: [DONE]\n\n"
    await wait_for(lambda: _counted(gateway, before))


async def _counted(gateway: Gateway, before: float) -> bool:
    return await gateway.metric("gateway_requests_total", reason="engine_error") == before + 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        (scripts.html_502(), 502, "engine_error"),
        (scripts.answer("oops", status=500, content_type="text/plain"), 502, "engine_error"),
        (scripts.answer("<html>", content_type="text/html"), 502, "engine_error"),
        (scripts.answer(b"", status=503), 503, "queue_full"),
        (scripts.error(429, "full", headers=[("retry-after", "7")]), 503, "queue_full"),
        (scripts.error(401, "Unauthorized"), 502, "engine_error"),
        (scripts.error(404, "The model does not exist."), 502, "engine_error"),
        (scripts.error(400, "This model's maximum context length is 8."), 400, "context_length_exceeded"),
        (scripts.error(400, "bad temperature", param="temperature"), 400, "invalid_request"),
        (scripts.garbage(), 502, "engine_error"),
        ([{"close": True}], 502, "engine_error"),
        ([{"reset": True}], 502, "engine_error"),
    ],
)
async def test_a_failure_before_the_first_byte_has_its_own_status(
    gateway: Gateway, fake_engine: FakeEngine, script: scripts.Steps, status: int, code: str, *, stream: bool
) -> None:
    """Stream or not: never a 200 first, JSON in our shape, no word of the engine's page in it."""
    await fake_engine.script(script)
    answer = await raw(gateway, stream=stream)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == code
    assert "<html>" not in answer.text
    if code == "queue_full":
        assert answer.headers["retry-after"] in ("5", "7")


async def test_an_answer_torn_in_its_middle_is_a_502_and_no_torn_200(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """A plain answer goes out only when it is whole."""
    head = answers.head(200, [("content-type", "application/json"), ("content-length", "500")])
    await fake_engine.script([scripts.send(head + b'{"id":'), {"close": True}])
    answer = await raw(gateway)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "engine_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_engine_that_says_nothing_is_a_504_and_is_let_go(
    impatient: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """After the time for the first byte the engine's connection ends too."""
    await fake_engine.script([{"hang": True}])
    answer = await raw(impatient, stream=stream)
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "engine_timeout"
    await fake_engine.wait(aborted=1)


async def test_a_stream_that_falls_silent_ends_with_an_error(
    impatient: Gateway, fake_engine: FakeEngine
) -> None:
    """Comments of ours do not count as the engine's words."""
    await fake_engine.script(scripts.stream(2, end="hang"))
    async with sdk(impatient) as client:
        assert (await error_of(client, [])).code == "engine_timeout"
    await fake_engine.wait(aborted=1)


@pytest.mark.parametrize(
    ("route", "events"),
    [
        ("/v1/chat/completions", [*answers.events(MODEL, 2, with_usage=False), answers.DONE]),
        ("/v1/responses", dialects.responses()),
        ("/v1/messages", dialects.messages()),
    ],
)
async def test_a_whole_answer_whose_body_never_ends_is_whole(
    impatient: Gateway, fake_engine: FakeEngine, route: str, events: list[bytes]
) -> None:
    """After the last word an engine's silence is no error, and none is added."""
    await fake_engine.script([*scripts.events(events)[:-1], {"hang": True}])
    answer = await called(impatient, route, stream=True)
    assert answer.content == b"".join(events)


async def test_a_slow_first_byte_within_the_limit_is_waited_for(
    client: AsyncOpenAI, fake_engine: FakeEngine
) -> None:
    """Long prefills are no errors."""
    await fake_engine.script(scripts.after(0.8, scripts.chat()))
    answer = await client.chat.completions.create(model=MODEL, messages=HELLO)
    assert answer.choices[0].message.content == "Hello."


async def test_what_the_engine_adds_to_an_answer_arrives_untouched(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """Unknown members, a missing model, numbers that are no JSON: bytes are bytes, and usage is counted."""
    body = (
        b'{"choices":[{"message":{"content":"x","reasoning_content":"y"},"logprobs":-Infinity}],"zzz":1.0,\n'
        b' "usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": null}}'
    )
    before = await gateway.metric("gateway_tokens_total", kind="completion")
    await fake_engine.script(scripts.answer(body))
    assert (await raw(gateway)).content == body
    assert await gateway.metric("gateway_tokens_total", kind="completion") == before + 4


async def test_the_engine_is_asked_for_usage_and_for_plain_bytes(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """On every stream, whatever the caller said; and never compressed."""
    await raw(gateway, stream=True, stream_options={"continuous_usage_stats": True})
    [request] = await fake_engine.requests()
    assert request.json()["stream_options"] == {"continuous_usage_stats": True, "include_usage": True}
    assert request.header("accept-encoding") == "identity"


async def test_an_engine_that_is_away_is_loading_and_back_at_once(
    client: AsyncOpenAI, fake_engine: FakeEngine
) -> None:
    """Refused connections are 503 with a wait; when it listens again the next call works."""
    await fake_engine.listen(on=False)
    with pytest.raises(openai.InternalServerError) as away:
        await client.chat.completions.create(model=MODEL, messages=HELLO)
    assert away.value.status_code == 503
    assert away.value.code == "engine_loading"
    assert away.value.response.headers["retry-after"] == "15"
    await fake_engine.listen(on=True)
    assert (await client.chat.completions.create(model=MODEL, messages=HELLO)).choices


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "script", [[{"hang": True}], scripts.stream(2, end="hang")], ids=["waiting", "streaming"]
)
async def test_a_caller_who_leaves_takes_the_engines_work_with_him(
    gateway: Gateway, fake_engine: FakeEngine, script: scripts.Steps, *, stream: bool
) -> None:
    """Before the first byte and after it: the engine sees the end, though it would go on for ever."""
    await fake_engine.script(script)
    call = asyncio.create_task(raw(gateway, stream=stream))
    await fake_engine.wait(running=1)
    call.cancel()
    await fake_engine.wait(aborted=1)
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_hundred_callers_who_leave_leave_nothing(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """At any point of their streams: every connection to the engine ends, every slot is free."""
    await fake_engine.script(scripts.stream(3000, pace=0.01))
    calls = [asyncio.create_task(raw(gateway, stream=True)) for _ in range(100)]
    await fake_engine.wait(running=100)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await fake_engine.wait(running=0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "raised", "code"),
    [
        (400, openai.BadRequestError, "invalid_request"), (413, openai.APIStatusError, "request_too_large"),
        (422, openai.BadRequestError, "invalid_request"), (501, openai.BadRequestError, "invalid_request"),
        (429, openai.InternalServerError, "queue_full"), (503, openai.InternalServerError, "queue_full"),
        (500, openai.InternalServerError, "engine_error"), (504, openai.InternalServerError, "engine_error"),
        (401, openai.InternalServerError, "engine_error"), (403, openai.InternalServerError, "engine_error"),
    ],
)  # fmt: skip
async def test_each_refusal_of_an_engine_raises_what_openais_sdk_has_for_it(
    client: AsyncOpenAI,
    fake_engine: FakeEngine,
    status: int,
    raised: type[openai.APIStatusError],
    code: str,
    *,
    stream: bool,
) -> None:
    """With code and type set, whatever the shape of the engine's own error."""
    for body in ('{"error":{"message":"why","type":"x","param":null,"code":1}}', '{"detail":"why"}'):
        await fake_engine.script(scripts.answer(body, status=status), times=1)
        with pytest.raises(raised) as refused:
            await client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)
        assert refused.value.code == code
        assert refused.value.type in ("invalid_request_error", "server_error")
        assert refused.value.request_id
