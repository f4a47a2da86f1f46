"""The real clients of the Responses and Messages APIs: whole streams are whole, broken ones raise."""

from collections.abc import AsyncIterator

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.fake_engine import dialects, scripts
from tests.fake_engine.handle import FakeEngine
from tests.relay.calls import CALLS, MODEL, called
from tests.relay.conftest import sdk
from tests.running import Gateway, wait_for

pytestmark = pytest.mark.usefixtures("leaves_nothing_behind")

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
STREAMS = {RESPONSES: dialects.responses(), MESSAGES: dialects.messages()}
TEXTS = {RESPONSES: 5, MESSAGES: 3}  # after so many events there is some text and no end


def anthropics(gateway: Gateway) -> AsyncAnthropic:
    """Anthropic's SDK without retries of its own."""
    return AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0)


@pytest.fixture
async def claude(gateway: Gateway) -> AsyncIterator[AsyncAnthropic]:
    """That SDK before the patient gateway."""
    async with anthropics(gateway) as made:
        yield made


async def responded(client: AsyncOpenAI, texts: list[str]) -> None:
    """Read a stream of the Responses API to its end, its text into `texts`."""
    async for event in await client.responses.create(model=MODEL, input="hello", stream=True):
        if event.type == "response.output_text.delta":
            texts.append(event.delta)  # noqa: PERF401  what came before an error is kept


async def messaged(claude: AsyncAnthropic, texts: list[str]) -> None:
    """Read a stream of the Messages API to its end, its text into `texts`."""
    async with claude.messages.stream(
        model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "hello"}]
    ) as stream:
        async for text in stream.text_stream:
            texts.append(text)  # noqa: PERF401  what came before an error is kept


async def test_whole_streams_are_read_whole(
    client: AsyncOpenAI, claude: AsyncAnthropic, fake_engine: FakeEngine
) -> None:
    """By the helpers of the SDKs too, which put the answer together from its events."""
    for route, events in STREAMS.items():
        await fake_engine.script(scripts.events(events), path=route)
    texts: list[str] = []
    await responded(client, texts)
    await messaged(claude, texts)
    assert texts == ["Par", "is", "Par", "is"]
    async with client.responses.stream(model=MODEL, input="hello") as stream:
        assert (await stream.get_final_response()).output_text == "Paris"


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES])
@pytest.mark.parametrize("split", [0, 1, 7])
async def test_a_stream_arrives_to_the_byte_and_is_counted(
    gateway: Gateway, fake_engine: FakeEngine, route: str, split: int
) -> None:
    """In any chunking, without anything that was not asked of the engine."""
    before = await gateway.metric("gateway_tokens_total", kind="completion")
    await fake_engine.script(scripts.events(STREAMS[route], split=split), path=route)
    answer = await called(gateway, route, stream=True)
    assert answer.content == b"".join(STREAMS[route])
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    [seen] = await fake_engine.requests(route)
    assert "stream_options" not in seen.json()

    async def counted() -> bool:
        return await gateway.metric("gateway_tokens_total", kind="completion") == before + 2

    await wait_for(counted)


async def test_anthropics_sdk_can_list_the_models(claude: AsyncAnthropic) -> None:
    """In OpenAI's shape, which it takes."""
    assert [model.id async for model in claude.models.list()] == [MODEL, "thinker"]
    assert (await claude.models.retrieve(MODEL)).id == MODEL


async def break_off(fake_engine: FakeEngine, end: str) -> None:
    """Let streams of both kinds end so after their first text."""
    for route, events in STREAMS.items():
        script = scripts.events(events[: TEXTS[route]])
        await fake_engine.script(script if end == "properly" else [*script[:-1], {end: True}], path=route)


async def assert_both_raise(gateway: Gateway, code: str) -> None:
    """What came stays, and an error follows it."""
    texts: list[str] = []
    async with sdk(gateway) as client:
        with pytest.raises(openai.APIError) as broken:
            await responded(client, texts)
    assert broken.value.code == code
    async with anthropics(gateway) as claude:
        with pytest.raises(anthropic.APIStatusError) as torn:
            await messaged(claude, texts)
    assert "'api_error'" in torn.value.message
    assert texts == ["Par", "Par"]


@pytest.mark.parametrize("end", ["properly", "close", "reset"])
async def test_a_broken_stream_raises_in_both_sdks(
    gateway: Gateway, fake_engine: FakeEngine, end: str
) -> None:
    """A clean end without the last event, FIN, RST."""
    await break_off(fake_engine, end)
    await assert_both_raise(gateway, "engine_error")


async def test_a_stream_that_falls_silent_raises_in_both_sdks(
    impatient: Gateway, fake_engine: FakeEngine
) -> None:
    """An engine that says nothing more is given up."""
    await break_off(fake_engine, "hang")
    await assert_both_raise(impatient, "engine_timeout")


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES])
async def test_an_error_of_the_engines_own_passes_and_is_the_last_word(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """Nothing is added to it; the log says that the call failed."""
    error = dialects.typed({"type": "error", "error": {"type": "internal_error", "message": "boom"}})
    events = [*STREAMS[route][:3], error]
    await fake_engine.script(scripts.events(events), path=route)
    answer = await called(gateway, route, stream=True)
    assert answer.content == b"".join(events)
    assert (await gateway.request_line(answer.headers["x-request-id"]))["reason"] == "engine_error"


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES])
async def test_heartbeats_stand_between_events(
    talkative: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """Nothing else differs; that the SDKs pass over them is seen elsewhere."""
    first, *rest = scripts.events(STREAMS[route])
    await fake_engine.script([first, rest[0], {"sleep": 0.9}, *rest[1:]], path=route)
    answer = await called(talkative, route, stream=True)
    assert b": heartbeat\n\n" in answer.content
    assert answer.content.replace(b": heartbeat\n\n", b"") == b"".join(STREAMS[route])


@pytest.mark.parametrize(
    ("status", "raised", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (413, anthropic.RequestTooLargeError, "request_too_large"),
        (422, anthropic.BadRequestError, "invalid_request_error"),
        (503, anthropic.APIStatusError, "overloaded_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (401, anthropic.InternalServerError, "api_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_engines_refusal_raises_the_class_that_anthropics_sdk_has_for_it(
    claude: AsyncAnthropic,
    fake_engine: FakeEngine,
    status: int,
    raised: type[anthropic.APIStatusError],
    kind: str,
    *,
    stream: bool,
) -> None:
    """With the engine's own words where the caller can mend it, and the request id in the body too."""
    body = '{"type":"error","error":{"type":"BadRequestError","message":"the engine says why"}}'
    await fake_engine.script(scripts.answer(body, status=status), path=MESSAGES)
    with pytest.raises(raised) as refused:
        await claude.messages.create(
            model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "hello"}], stream=stream
        )
    error = refused.value
    assert isinstance(error.body, dict)
    assert error.body["type"] == "error"
    assert error.body["error"]["type"] == kind
    assert error.body["request_id"] == error.response.headers["x-request-id"]
    assert ("the engine says why" in error.body["error"]["message"]) == (status in (400, 413, 422))


@pytest.mark.parametrize("route", CALLS)
async def test_too_long_a_prompt_is_told_apart_on_every_route(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """In the engine's own words, by which clients know that they must shorten it."""
    words = "This model's maximum context length is 8 tokens. However, your prompt contains 9 input tokens."
    await fake_engine.script(scripts.error(400, words, param="input_tokens"), path=route)
    answer = await called(gateway, route)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"] == words
    if route not in (MESSAGES, MESSAGES + "/count_tokens"):
        assert (error["code"], error["param"]) == ("context_length_exceeded", "input_tokens")


@pytest.mark.parametrize("route", CALLS)
async def test_a_route_that_the_engine_lacks_is_a_400_that_says_so(
    gateway: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """No client retries it, and nobody looks for a mistake in a URL."""
    await fake_engine.script(scripts.error(404, "Not Found"), path=route)
    answer = await called(gateway, route)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"The model '{MODEL}' does not serve {route}."
