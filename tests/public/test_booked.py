"""What a call costs: the tokens that the engine counts, or nothing; and the row that says so."""

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAIError

from tests.callers import CHAT, ask, chat, request
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.prompts import HELLO
from tests.public.metered import ODD, TPM, Stopwatch, booked, having, limited, refused_by, remaining, told
from tests.relay.calls import at_rest
from tests.running import Gateway, wait_for
from tests.usage_rows import sums

NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0, "estimated": 0}


async def test_tokens_are_reserved_while_a_call_runs(metered: Gateway, fake_engine: FakeEngine) -> None:
    """Of five at once that would use more than there is together, one passes; what it left unused is free."""
    key = await limited(metered, tpm=100)
    await fake_engine.script(scripts.gated("go", scripts.chat(tokens=2)), times=1)
    calls = [asyncio.create_task(key.ask(max_tokens=60)) for _ in range(5)]
    watch = Stopwatch()
    await wait_for(lambda: _done(calls, 4))
    assert len(await fake_engine.requests()) == 1
    await fake_engine.open_gate("go")
    ended = [await call for call in calls]
    assert sum(answer.status == 200 for answer in ended) == 1
    assert sum(refused_by(answer, "tpm") for answer in ended) == 4
    assert 91 <= (await key.left())["tokens"] <= 91 + watch.refill(100)
    assert await key.status(max_tokens=60) == 200


async def _done(calls: list[asyncio.Task[Any]], count: int) -> bool:
    return sum(call.done() for call in calls) >= count


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("include_usage", [False, True])
async def test_streams_cost_what_plain_answers_cost(
    metered: Gateway, *, stream: bool, include_usage: bool
) -> None:
    """7 and 43 tokens each time, whether the caller asks for usage or not."""
    key = await limited(metered, tpm=TPM)
    watch = Stopwatch()
    asked = {"stream": True, "stream_options": {"include_usage": include_usage}} if stream else {}
    for _ in range(6):
        assert await key.status(max_tokens=43, **asked) == 200
    for row in await booked(key, 6):
        assert having(row, prompt_tokens=7, completion_tokens=43, estimated=0, status=200, reason="ok")
    assert TPM - 300 <= (await key.left())["tokens"] <= TPM - 300 + watch.refill(TPM)


async def test_tokens_from_the_cache_count_in_full_everywhere(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """In the limit, its headers and the books alike; the books tell them apart."""
    usage: dict[str, Any] = {"prompt_tokens": 10_000, "completion_tokens": 5}
    usage |= {"prompt_tokens_details": {"cached_tokens": 8000}}
    await fake_engine.script(told(usage))
    key = await limited(metered, tpm=20_000)
    watch = Stopwatch()
    answer = await key.ask(model=ODD, max_tokens=5)
    assert 9995 <= remaining(answer)["tokens"] <= 9995 + watch.refill(20_000)
    assert 9995 <= (await key.left())["tokens"] <= 9995 + watch.refill(20_000)
    [row] = await booked(key)
    assert having(row, prompt_tokens=10_000, cached_tokens=8000, completion_tokens=5)
    assert having(await sums(metered, key.id), requests=1, prompt_tokens=10_000, cached_tokens=8000)


DETAILS: tuple[tuple[dict[str, Any], int, int], ...] = (
    ({"prompt_tokens_details": None}, 0, 0),
    ({}, 0, 0),
    ({"prompt_tokens_details": {"cached_tokens": None}}, 0, 0),
    ({"completion_tokens_details": {"reasoning_tokens": 5}}, 0, 5),
    ({"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": None}, 3, 0),
)


@pytest.mark.parametrize("stream", [False, True])
async def test_details_of_usage_may_be_null_or_absent(
    metered: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """Then there are none; reasoning is part of the completion and not added to it."""
    key = await limited(metered, tpm=TPM)
    for more, _, _ in DETAILS:
        usage = {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15, **more}
        last = answers.event({"choices": [], "usage": usage})
        streamed = scripts.events([*answers.events("fake-model", 2), last, answers.DONE])
        await fake_engine.script(streamed if stream else told(usage), times=1)
        assert await key.status(model=ODD, stream=stream) == 200
    found = await booked(key, len(DETAILS))
    assert all(having(row, prompt_tokens=9, completion_tokens=6, estimated=0) for row in found)
    assert [(row["cached_tokens"], row["reasoning_tokens"]) for row in found] == [
        (cached, reasoning) for _, cached, reasoning in DETAILS
    ]


async def test_an_answer_without_usage_is_estimated(metered: Gateway, fake_engine: FakeEngine) -> None:
    """An engine that forgets to count gives nothing away."""
    await fake_engine.script(told(...))
    key = await limited(metered, tpm=TPM)
    assert await key.status(model=ODD, max_tokens=8) == 200
    [row] = await booked(key)
    assert having(row, estimated=1, status=200, reason="ok")
    assert row["prompt_tokens"] > 0


LONG = [{"role": "user", "content": "Tell me all about Paris. " * 500}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "usage",
    [
        ...,
        {},
        {"prompt_tokens": None, "completion_tokens": 9},
        {"prompt_tokens": 7, "completion_tokens": "9"},
    ],
    ids=["none", "empty", "no prompt", "no completion"],
)
async def test_a_count_that_is_none_is_not_booked_as_exact(
    metered: Gateway, fake_engine: FakeEngine, usage: Any, *, stream: bool
) -> None:
    """A finished call pays for its whole prompt then, in a stream for what came, and is marked."""
    last = [] if usage is ... else [answers.event({"choices": [], "usage": usage})]
    streamed = scripts.events([*answers.events("fake-model", 20), *last, answers.DONE])
    await fake_engine.script(streamed if stream else told(usage))
    key = await limited(metered, tpm=TPM)
    answer = await key.ask(stream=stream, max_tokens=50, messages=LONG)
    assert not stream or b'"usage"' not in answer.body
    [row] = await booked(key)
    assert having(row, estimated=1, status=200, reason="ok")
    assert row["prompt_tokens"] > 1000
    assert not stream or 18 <= row["completion_tokens"] <= 24


async def test_counts_in_the_middle_of_a_stream_are_not_of_its_end(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """What came after them is estimated, and what they told stands."""
    said = answers.events("fake-model", 30)
    counts = answers.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    await fake_engine.script(scripts.events([*said[:4], counts, *said[4:], answers.DONE]))
    key = await limited(metered, tpm=TPM)
    assert await key.status(stream=True) == 200
    [row] = await booked(key)
    assert having(row, estimated=1, prompt_tokens=7, status=200, reason="ok")
    assert 28 <= row["completion_tokens"] <= 34


REFUNDED: dict[str, tuple[scripts.Steps, int, str]] = {
    "429": (scripts.error(429, "full", headers=[("retry-after", "30")]), 503, "30"),
    "503": (scripts.error(503, "full", headers=[("retry-after", "5")]), 503, "5"),
    "503 without a wait": (scripts.answer(b"", status=503), 503, "5"),
    "500": (scripts.error(500, "boom"), 502, ""),
    "401": (scripts.error(401, "Unauthorized"), 502, ""),
    "a page": (scripts.html_502(), 502, ""),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", REFUNDED)
async def test_what_the_engine_did_not_take_costs_nothing(
    metered: Gateway, fake_engine: FakeEngine, fault: str, *, stream: bool
) -> None:
    """Not even the request, of which this key has one a minute; and no limit is said to have refused it."""
    script, status, retry_after = REFUNDED[fault]
    await fake_engine.script(script, times=3)
    key = await limited(metered, rpm=1, tpm=TPM, max_parallel=1)
    for _ in range(3):
        answer = await key.ask(stream=stream)
        assert (answer.status, answer.headers.get("retry-after", "")) == (status, retry_after)
    assert remaining(answer) == {"requests": 1, "tokens": TPM}
    assert await key.left() == {"requests": 1, "tokens": TPM}
    assert await key.status() == 200
    assert await metered.metric("gateway_limited_total", key=key.id) == 0
    assert all(having(row, **NO_TOKENS) for row in (await booked(key, 4))[:3])


async def test_an_engine_that_is_away_costs_nothing(metered: Gateway, fake_engine: FakeEngine) -> None:
    """Ten streams of a key with two slots meet nobody; the next call finds all as it was."""
    key = await limited(metered, rpm=1, tpm=TPM, max_parallel=2)
    await fake_engine.listen(False)
    for _ in range(10):
        assert await key.status(stream=True) == 503
    await fake_engine.listen()
    assert await key.left() == {"requests": 1, "tokens": TPM}

    async def served() -> bool:
        return await key.status() == 200

    await wait_for(served)
    await wait_for(lambda: at_rest(metered))


async def test_an_engine_that_goes_away_costs_nothing(metered: Gateway, fake_engine: FakeEngine) -> None:
    """It drops the connection with the call and takes no other: the caller is told that nobody is there."""
    key = await limited(metered, rpm=2, tpm=TPM)
    assert await key.status() == 200
    left = await key.left()
    await fake_engine.script([{"hang": True}])
    call = asyncio.create_task(key.ask(stream=True))
    await fake_engine.wait(running=1)
    await fake_engine.listen(False)
    assert (await call).status == 503
    assert (await key.left())["requests"] >= left["requests"]
    assert having((await booked(key, 2))[1], **NO_TOKENS, status=503)
    await fake_engine.reset()
    free = await limited(metered)

    async def served() -> bool:
        return await free.status() == 200

    await wait_for(served)


async def test_what_the_engine_calls_a_mistake_costs_a_request(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """As one that the gateway finds itself; and no tokens."""
    await fake_engine.script(scripts.error(400, "This model's maximum context length is 10 tokens."))
    key = await limited(metered, rpm=1, tpm=TPM)
    answer = await key.ask()
    assert answer.error["code"] == "context_length_exceeded"
    assert remaining(answer) == {"requests": 0, "tokens": TPM}
    [row] = await booked(key)
    assert having(row, **NO_TOKENS, status=400, reason="context_length_exceeded")


async def test_each_attempt_has_a_row_with_the_callers_own_id(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """The SDK tries again by itself: whoever reads the books can tell that it was one call."""
    await fake_engine.script(scripts.error(500, "boom"), times=1)
    key = await limited(metered, rpm=100)
    async with AsyncOpenAI(base_url=f"{metered.url}/v1", api_key=key.key, max_retries=1) as sdk:
        await sdk.chat.completions.create(
            model="fake-model", messages=HELLO, extra_headers={"x-client-request-id": "mine-1"}
        )
    found = await booked(key, 2)
    assert [row["status"] for row in found] == [502, 200]
    assert {row["caller_request_id"] for row in found} == {"mine-1"}
    assert len({row["request_id"] for row in found}) == 2


@pytest.mark.parametrize("script", [scripts.error(401, "Unauthorized"), scripts.error(404, "no such model")])
async def test_what_can_never_succeed_is_tried_once(
    metered: Gateway, fake_engine: FakeEngine, script: scripts.Steps
) -> None:
    """`x-should-retry: false` spares the SDK its retries, and the books their rows."""
    await fake_engine.script(script)
    key = await limited(metered)
    async with AsyncOpenAI(base_url=f"{metered.url}/v1", api_key=key.key, max_retries=2) as sdk:
        with pytest.raises(OpenAIError):
            await sdk.chat.completions.create(model="fake-model", messages=HELLO)
    await booked(key)


async def test_who_is_not_known_has_no_row(metered: Gateway) -> None:
    """Nor has what no engine serves."""
    key = await limited(metered)
    for call in (chat("nobody"), request("GET", "/v1/models", [("x-api-key", key.key)]), chat(key.key)):
        await ask(metered, call)
    assert having((await booked(key))[0], route=CHAT, status=200)
