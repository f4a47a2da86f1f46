"""`max_parallel`: the call over it is refused at once, and every slot comes back, however its call ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.callers import Answer, Caller, ask, chat
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for


@pytest.fixture(scope="module")
async def key(shared_gateway: Gateway) -> str:
    """A key of two calls at once."""
    made: str = (await shared_gateway.create_key(name="two", max_parallel=2))["key"]
    return made


@pytest.fixture(autouse=True)
async def both_slots_are_free_again(
    gateway: Gateway, fake_engine: FakeEngine, key: str
) -> AsyncIterator[None]:
    """Whatever a test did, two calls run at once afterwards."""
    yield
    await fake_engine.reset()
    await fake_engine.script(scripts.gated("free", scripts.chat()))

    async def free() -> bool:
        calls = [asyncio.create_task(ask(gateway, chat(key))) for _ in range(2)]
        await fake_engine.open_gate("free", 2)
        return {(await call).status for call in calls} == {200}

    await wait_for(free)


def refused(answer: Answer) -> bool:
    """Whether an answer is the refusal for too many calls at once, in all its parts."""
    if answer.status != 429:
        return False
    assert (answer.error["code"], answer.error["type"]) == ("rate_limit_exceeded", "rate_limit_error")
    assert "2 calls" in answer.error["message"]
    assert "max_parallel" in answer.error["message"]
    assert answer.headers["retry-after"] == "1"
    assert "x-should-retry" not in answer.headers
    return True


@pytest.mark.parametrize("stream", [False, True])
async def test_one_more_than_allowed_is_refused_and_costs_nothing(
    gateway: Gateway, fake_engine: FakeEngine, key: str, *, stream: bool
) -> None:
    """The engine hears of two; the third passes as soon as one has ended."""
    await fake_engine.script(scripts.gated("go", scripts.chat()))
    running = [asyncio.create_task(ask(gateway, chat(key, stream=stream))) for _ in range(2)]
    await fake_engine.wait(running=2)
    limited = await gateway.metric("gateway_limited_total", limit="max_parallel")
    assert refused(await ask(gateway, chat(key)))
    assert await gateway.metric("gateway_limited_total", limit="max_parallel") == limited + 1
    assert len(await fake_engine.requests()) == 2
    await fake_engine.open_gate("go", 3)
    assert {(await call).status for call in running} == {200}
    assert (await ask(gateway, chat(key))).status == 200


async def test_of_a_burst_exactly_as_many_as_allowed_pass(
    gateway: Gateway, fake_engine: FakeEngine, key: str
) -> None:
    """All at once, none is let through twice; other keys are not concerned."""
    await fake_engine.script(scripts.gated("go", scripts.chat()))
    burst = [asyncio.create_task(ask(gateway, chat(key))) for _ in range(30)]
    other = asyncio.create_task(ask(gateway, chat(gateway.key)))
    await fake_engine.wait(running=3)
    await wait_for(lambda: _done(burst, 28))
    await fake_engine.open_gate("go", 3)
    answers = [await call for call in burst]
    assert sum(refused(answer) for answer in answers) == 28
    assert sum(answer.status == 200 for answer in answers) == 2
    assert (await other).status == 200


async def _done(calls: list[asyncio.Task[Answer]], count: int) -> bool:
    return sum(call.done() for call in calls) == count


@pytest.mark.parametrize(
    ("script", "stream"),
    [
        (scripts.error(500, "boom"), False), (scripts.error(400, "bad"), True), (scripts.html_502(), True),
        ([{"reset": True}], False), (scripts.stream(2, end="reset"), True),
        (scripts.stream(2, end="no_done"), True),
        (scripts.stream(2), True),
    ],
)  # fmt: skip
async def test_a_slot_comes_back_when_the_engine_fails(
    gateway: Gateway, fake_engine: FakeEngine, key: str, script: scripts.Steps, *, stream: bool
) -> None:
    """Ten calls one after the other would need ten slots otherwise."""
    await fake_engine.script(script)
    for _ in range(10):
        assert not refused(await ask(gateway, chat(key, stream=stream)))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "script", [[{"hang": True}], scripts.stream(2, end="hang")], ids=["waiting", "streaming"]
)
async def test_a_slot_comes_back_when_the_caller_leaves(
    gateway: Gateway, fake_engine: FakeEngine, key: str, script: scripts.Steps, *, stream: bool
) -> None:
    """Before the first byte or after it, ten times."""
    await fake_engine.script(script)
    for departures in range(1, 11):
        async with Caller(gateway) as caller:
            await caller.send(chat(key, stream=stream))
            await fake_engine.wait(requests=departures)
        await fake_engine.wait(aborted=departures)


async def test_what_is_refused_for_what_it_says_takes_no_slot(gateway: Gateway, key: str) -> None:
    """Neither a bad body nor an unknown model."""
    for _ in range(5):
        assert (await ask(gateway, chat(key, b"no json"))).status == 400
        assert (await ask(gateway, chat(key, model="nope"))).status == 404
