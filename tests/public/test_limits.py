"""What a caller meets at a limit: as much as was promised, a refusal that says why, a wait that is true."""

import asyncio
from collections.abc import Callable

import openai
import pytest
from openai import AsyncOpenAI

from gateway.routes import OF_ENGINES, ROUTES
from tests.callers import CHAT, Answer, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.prompts import HELLO
from tests.public.metered import ODD, TPM, Limited, Stopwatch, limited, refused_by, remaining
from tests.relay.calls import called
from tests.running import Gateway, wait_for

COUNTED = tuple(route.template for route in ROUTES if route.served == "engine" and route.usage)
CALL_TOKENS = 10
RESERVED_AT_MOST = 40


async def drain(key: Limited, limit: str) -> tuple[int, Answer]:
    """Call until this limit refuses: how many calls have passed, and the refusal."""
    passed = 0
    while not refused_by(answer := await key.ask(max_tokens=CALL_TOKENS - 7), limit):
        assert answer.status == 200, answer
        passed += 1
    return passed, answer


@pytest.mark.parametrize(
    ("limit", "value", "cost", "short"), [("rpm", 40, 1, 0), ("tpm", 400, CALL_TOKENS, RESERVED_AT_MOST)]
)
async def test_a_minute_of_calls_passes_and_the_wait_that_is_told_is_true(
    metered: Gateway, limit: str, value: int, cost: int, short: int
) -> None:
    """All at once if need be; then, after exactly so long, one call passes at its first try."""
    key = await limited(metered, **{limit: value})
    watch = Stopwatch()
    passed, refusal = await drain(key, limit)
    assert value - short <= passed * cost <= value + watch.refill(value) + cost
    await asyncio.sleep(int(refusal.headers["retry-after"]))
    assert await key.status(max_tokens=CALL_TOKENS - 7) == 200


async def test_a_slot_is_free_after_the_wait_that_is_told(metered: Gateway, fake_engine: FakeEngine) -> None:
    """Which is short: nobody can know when another call ends."""
    key = await limited(metered, max_parallel=1)
    await fake_engine.script(scripts.gated("go", scripts.chat()), times=1)
    running = asyncio.create_task(key.ask())
    await fake_engine.wait(running=1)
    refusal = await key.ask()
    assert refused_by(refusal, "max_parallel")
    await fake_engine.open_gate("go")
    assert (await running).status == 200
    await asyncio.sleep(int(refusal.headers["retry-after"]))
    assert await key.status() == 200


@pytest.mark.parametrize(("limit", "value"), [("rpm", 40), ("tpm", 900)])
async def test_the_sdk_waits_by_itself_and_needs_one_retry(metered: Gateway, limit: str, value: int) -> None:
    """It believes `Retry-After`; where the machine stood still for so long, it needs none."""
    key = await limited(metered, **{limit: value})
    async with AsyncOpenAI(base_url=f"{metered.url}/v1", api_key=key.key, max_retries=2) as sdk:
        retries = 0
        while not retries:
            await drain(key, limit)
            answer = await sdk.chat.completions.with_raw_response.create(
                model="fake-model", messages=HELLO, max_tokens=CALL_TOKENS - 7
            )
            retries = answer.retries_taken
            assert answer.http_response.status_code == 200
    assert retries == 1


async def test_the_sdk_waits_for_a_slot(metered: Gateway, fake_engine: FakeEngine) -> None:
    """A call over `max_parallel` is made again once another has ended."""
    key = await limited(metered, max_parallel=1)
    await fake_engine.script(scripts.gated("go", scripts.chat()), times=1)
    running = asyncio.create_task(key.ask())
    await fake_engine.wait(running=1)
    async with AsyncOpenAI(base_url=f"{metered.url}/v1", api_key=key.key, max_retries=5) as sdk:
        waiting = asyncio.create_task(sdk.chat.completions.create(model="fake-model", messages=HELLO))
        await wait_for(lambda: _limited(key, "max_parallel"))
        await fake_engine.open_gate("go")
        assert (await running).status == 200
        assert (await waiting).choices


async def _limited(key: Limited, limit: str) -> bool:
    return await key.gateway.metric("gateway_limited_total", key=key.id, limit=limit) > 0


async def test_a_calm_caller_is_never_refused(metered: Gateway) -> None:
    """Both limits at once, their buckets just emptied: nine tenths of the pace that they allow pass."""
    pace = 300
    key = await limited(metered, rpm=pace, tpm=pace * CALL_TOKENS)
    while (answer := await key.ask(max_tokens=CALL_TOKENS - 7)).status == 200:
        pass
    assert refused_by(answer, "pm")
    await asyncio.sleep(int(answer.headers["retry-after"]))
    for _ in range(6):
        assert await key.status(max_tokens=CALL_TOKENS - 7) == 200
        await asyncio.sleep(60 / pace / 0.9)


@pytest.mark.parametrize("limit", ["tokens_per_day", "tokens_per_month"])
async def test_a_spent_budget_says_so_and_when_it_is_renewed(metered: Gateway, limit: str) -> None:
    """With a code of its own, and no retry that could not succeed: the SDK raises at once."""
    key = await limited(metered, **{limit: 10})
    assert await key.status() == 200
    refusal = await key.ask()
    assert (refusal.status, refusal.error["type"]) == (429, "insufficient_quota")
    assert refusal.error["code"] == "insufficient_quota"
    assert limit in refusal.error["message"]
    assert "renew" in refusal.error["message"]
    assert refusal.headers["x-should-retry"] == "false"
    async with AsyncOpenAI(base_url=f"{metered.url}/v1", api_key=key.key, max_retries=2) as sdk:
        with pytest.raises(openai.RateLimitError) as raised:
            await sdk.chat.completions.create(model="fake-model", messages=HELLO)
    assert raised.value.code == "insufficient_quota"


async def test_a_call_larger_than_a_whole_minute_can_never_pass(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """It says so, instead of a wait; a smaller one of the same key passes."""
    key = await limited(metered, tpm=200)
    answer = await key.ask(max_tokens=900)
    assert (answer.status, answer.error["code"]) == (429, "rate_limit_exceeded")
    assert "tpm" in answer.error["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
    assert await fake_engine.requests() == []
    assert await key.status(max_tokens=5) == 200


def _limits(limit: str) -> dict[str, int]:
    return {limit: 5000 if limit == "tpm" else 1}


@pytest.mark.parametrize("limit", ["rpm", "tpm"])
async def test_a_limit_holds_on_every_route(metered: Gateway, fake_engine: FakeEngine, limit: str) -> None:
    """Used up by chat, it refuses each route that it counts, and the engine hears of none of them."""
    key = await limited(metered, **_limits(limit))
    await key.spend_all(fake_engine)
    heard = len(await fake_engine.requests())
    for route in COUNTED if limit == "tpm" else OF_ENGINES:
        answer = await called(metered, route, key=key.key)
        assert answer.status_code == 429, route
        error = answer.json()["error"]
        assert error["type"] == "rate_limit_error"
        assert limit in error["message"]
        assert 1 <= int(answer.headers["retry-after"]) <= 120
    assert len(await fake_engine.requests()) == heard


async def test_routes_that_use_no_tokens_count_as_requests_alone(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """A key without tokens left may still count them."""
    key = await limited(metered, tpm=1000)
    await key.spend_all(fake_engine)
    await fake_engine.script(scripts.answer('{"count": 3, "tokens": [1, 2, 3]}'), path="/tokenize")
    assert (await called(metered, "/tokenize", key=key.key)).status_code == 200


async def test_the_first_answer_tells_what_is_left_after_it(metered: Gateway) -> None:
    """Of requests and of tokens, those in use by it included; nothing about limits that a key lacks."""
    key = await limited(metered, rpm=2, tpm=1000)
    watch = Stopwatch()
    plain = await key.ask(max_tokens=5)
    assert plain.headers["x-ratelimit-limit-requests"] == "2"
    assert plain.headers["x-ratelimit-limit-tokens"] == "1000"
    assert remaining(plain)["requests"] == 1
    assert 988 <= remaining(plain)["tokens"] <= 988 + watch.refill(1000)
    stream = await key.ask(max_tokens=5, stream=True)
    assert remaining(stream)["requests"] == 0
    assert remaining(await ask(metered, chat(metered.key))) == {}
    only = await limited(metered, tpm=1000)
    assert set(remaining(await only.ask())) == {"tokens"}


BAD: dict[str, tuple[int, Callable[[str], bytes]]] = {
    "no JSON": (400, lambda key: chat(key, b"no json")),
    "a field": (400, lambda key: chat(key, messages=7, temperature={})),
    "the model": (404, lambda key: chat(key, model="nobody")),
    "too large": (413, lambda key: request("POST", CHAT, [("x-api-key", key), ("content-length", "9" * 12)])),
    "the type": (415, lambda key: chat(key, b"x", [("content-type", "text/plain")])),
}


@pytest.mark.parametrize("fault", BAD)
async def test_what_is_refused_for_what_it_says_costs_one_request(
    metered: Gateway, fake_engine: FakeEngine, fault: str
) -> None:
    """And no tokens; its answer tells what is left. Then the key has none left, for good calls and bad."""
    status, call = BAD[fault]
    if fault == "a field":
        await fake_engine.script(scripts.error(400, "messages: not valid", param="messages"))
    key = await limited(metered, rpm=1, tpm=TPM)
    answer = await ask(metered, call(key.key))
    assert answer.status == status
    assert remaining(answer) == {"requests": 0, "tokens": TPM}
    assert refused_by(await key.ask(), "rpm")
    if fault != "too large":
        assert refused_by(await ask(metered, call(key.key)), "rpm")
    assert await key.left() == {"requests": 0, "tokens": TPM}


async def test_looking_at_models_costs_nothing(metered: Gateway) -> None:
    """Nor does what is no route, or a route with another method."""
    key = await limited(metered, rpm=1)
    for path in ("/v1/models", "/v1/models/fake-model", "/v1/models/nobody", "/healthz", "/v1/nothing", CHAT):
        await ask(metered, request("GET", path, [("x-api-key", key.key)]))
    assert await key.status() == 200
    assert refused_by(await key.ask(), "rpm")


async def test_a_refusal_costs_nothing_of_any_limit(metered: Gateway, fake_engine: FakeEngine) -> None:
    """Whichever limit refuses, the others are as they were."""
    key = await limited(metered, rpm=2, tpm=1000, max_parallel=1)
    await fake_engine.script(scripts.gated("go", scripts.chat()))
    running = asyncio.create_task(key.ask(max_tokens=1))
    await fake_engine.wait(running=1)
    for _ in range(5):
        assert refused_by(await key.ask(max_tokens=1), "max_parallel")
    assert (await key.left())["requests"] == 1
    await fake_engine.open_gate("go", 2)
    await running
    assert await key.status(max_tokens=1) == 200


async def test_of_a_burst_on_many_connections_a_minutes_worth_passes(metered: Gateway) -> None:
    """One process decides for all of them."""
    key = await limited(metered, rpm=10)
    watch = Stopwatch()
    answers = await asyncio.gather(*(key.ask() for _ in range(60)))
    passed = sum(answer.status == 200 for answer in answers)
    assert 10 <= passed <= 10 + watch.refill(10)
    assert all(refused_by(answer, "rpm") for answer in answers if answer.status != 200)


async def test_the_messages_api_is_told_in_its_own_shape(metered: Gateway, fake_engine: FakeEngine) -> None:
    """The Anthropic SDK knows its type, and waits as well."""
    key = await limited(metered, tpm=1000)
    await key.spend_all(fake_engine)
    answer = (await called(metered, "/v1/messages", key=key.key)).json()
    assert (answer["type"], answer["error"]["type"]) == ("error", "rate_limit_error")


async def test_defaults_hold_for_keys_that_say_nothing(metered: Gateway) -> None:
    """From the reload on that brings them, and until the one that takes them away."""
    silent, free = await limited(metered), await limited(metered, rpm="unlimited")
    own = await limited(metered, rpm=1000)
    before = metered.config_file.read_text()
    try:
        metered.config_file.write_text(before.replace("[budgets]", "[limits.default]\nrpm = 1\n[budgets]"))
        assert (await metered.admin("POST", "/admin/reload")).status_code == 200
        for key in (silent, free, own):
            assert await key.status(model=ODD) == 200
        assert refused_by(await silent.ask(), "rpm")
        assert (await free.status(), await own.status()) == (200, 200)
        assert remaining(await free.ask()) == {}
    finally:
        metered.config_file.write_text(before)
        assert (await metered.admin("POST", "/admin/reload")).status_code == 200
    assert await silent.status() == 200
