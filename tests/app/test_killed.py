"""Killed in the midst of its calls, or told to stop: what is in the books after the next start."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.callers import Answer, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.public.metered import Limited, booked, config, having, limited, refused_by
from tests.running import Gateway, wait_for
from tests.usage_rows import Row, intact, rows, sums

RUNNING = 200


@pytest.fixture
async def doomed(tmp_path: Path, fake_engine: FakeEngine) -> AsyncIterator[Gateway]:
    """A gateway that a test may kill and start again on the same data; its drain is over at once."""
    async with Gateway(
        tmp_path, config=config(fake_engine.url), GATEWAY_SERVER__DRAIN_SECONDS="0.2"
    ) as gateway:
        yield gateway


async def answered(key: Limited, count: int) -> None:
    """So many calls of 12 tokens, all of which get their answers."""
    answers = await asyncio.gather(*(key.ask(stream=number % 2 == 0) for number in range(count)))
    assert {answer.status for answer in answers} == {200}


def distinct(found: list[Row]) -> bool:
    """Whether no request stands twice."""
    return len({row["request_id"] for row in found}) == len(found)


async def start_again(gateway: Gateway, keys: list[Limited]) -> None:
    """On the same data, until each of these keys is known."""
    await gateway.start()
    for key in keys:
        await wait_for(lambda key=key: _known(key))


async def _known(key: Limited) -> bool:
    answer = await ask(key.gateway, request("GET", "/v1/models", [("x-api-key", key.key)]))
    return answer.status == 200


async def _nothing_pending(gateway: Gateway, calls: int) -> bool:
    """Whether so many calls have ended and all their rows are written."""
    ended = await gateway.metric("gateway_requests_total", route="/v1/chat/completions")
    return ended == calls and await gateway.metric("gateway_usage_rows_pending") == 0


async def begin(gateway: Gateway, engine: FakeEngine, keys: list[Limited]) -> list[asyncio.Task[Answer]]:
    """200 calls of these keys at once, half of them streams that have said something; all are under way."""
    await engine.script(scripts.stream(2, end="hang"), times=RUNNING // 2)
    await engine.script([{"hang": True}])
    calls = []
    for number in range(RUNNING):
        call = chat(keys[number % len(keys)].key, stream=number < RUNNING // 2, max_tokens=50)
        calls.append(asyncio.create_task(ask(gateway, call)))
        if number + 1 == RUNNING // 2:
            await engine.wait(running=RUNNING // 2)
    await engine.wait(running=RUNNING)
    return calls


async def test_killed_in_the_midst_of_200_calls(doomed: Gateway, fake_engine: FakeEngine) -> None:
    """What had ended is booked, once; budgets go on where they were; nothing that ran holds anything."""
    spent = await limited(doomed, tokens_per_day=20, tpm=1_000_000)
    other = await limited(doomed, tokens_per_day=1_000_000, tokens_per_month=1_000_000, tpm=1_000_000)
    full = await limited(doomed, max_parallel=RUNNING // 4, tpm=1_000_000)
    keys = [spent, other, full]
    for _ in range(2):
        await answered(spent, 1)
    await answered(other, 40)
    before = [*await booked(spent, 2), *await booked(other, 40)]
    calls = await begin(doomed, fake_engine, [other, full, other, other])
    assert refused_by(await full.ask(), "max_parallel")
    assert await doomed.stop(signal.SIGKILL) == -signal.SIGKILL
    await asyncio.gather(*calls, return_exceptions=True)
    await fake_engine.wait(running=0)
    assert intact(doomed)

    await start_again(doomed, keys)
    found = [*rows(doomed, spent.id), *rows(doomed, other.id)]
    assert sorted(before, key=str) == sorted(found, key=str)
    await fake_engine.reset()
    assert (await spent.ask()).error["code"] == "insufficient_quota"
    assert await other.status() == 200
    await fake_engine.script(scripts.gated("go", scripts.chat()))
    again = [asyncio.create_task(full.ask()) for _ in range(RUNNING // 4)]
    await fake_engine.wait(running=RUNNING // 4)
    await fake_engine.open_gate("go", RUNNING // 4)
    assert {(await call).status for call in again} == {200}
    await booked(other, 41)
    assert (await sums(doomed, other.id))["prompt_tokens"] == 41 * 7


@pytest.mark.parametrize("is_written", [True, False])
async def test_killed_just_after_the_last_byte_of_100_calls(doomed: Gateway, is_written: bool) -> None:
    """What was written stays, all of it once no row is pending: rows are whole, and none stands twice."""
    key = await limited(doomed, tokens_per_day=1_000_000)
    await answered(key, 50)
    before = await booked(key, 50)
    await answered(key, 100)
    if is_written:
        await wait_for(lambda: _nothing_pending(doomed, 150))
    await doomed.stop(signal.SIGKILL)
    assert intact(doomed)

    await start_again(doomed, [key])
    found = rows(doomed, key.id)
    assert found[: len(before)] == before
    assert len(found) in ((150,) if is_written else range(50, 151))
    assert distinct(found)
    assert all(having(row, prompt_tokens=7, completion_tokens=5, estimated=0, status=200) for row in found)
    told = await sums(doomed, key.id)
    assert having(told, requests=len(found), prompt_tokens=7 * len(found), completion_tokens=5 * len(found))
    await answered(key, 3)
    await booked(key, len(found) + 3)


async def test_told_to_stop_it_loses_nothing(doomed: Gateway, fake_engine: FakeEngine) -> None:
    """Neither what had just ended nor the 200 calls that it cut."""
    key = await limited(doomed, tokens_per_day=1_000_000)
    await answered(key, 100)
    calls = await begin(doomed, fake_engine, [key])
    assert await doomed.stop() == 0
    ended = [await call for call in calls]
    assert all(b'"shutting_down"' in answer.body for answer in ended)
    found = rows(doomed, key.id)
    assert len(found) == 100 + RUNNING
    assert distinct(found)
    assert intact(doomed)
    cut = [row for row in found if row["reason"] == "shutting_down"]
    assert len(cut) == RUNNING
    assert all(having(row, estimated=1) and row["prompt_tokens"] > 0 for row in cut)
    streams = [row for row in cut if row["status"] == 200]
    assert len(streams) == RUNNING // 2
    assert all(row["completion_tokens"] in range(1, 5) for row in streams)

    await start_again(doomed, [key])
    used = sum(row["prompt_tokens"] + row["completion_tokens"] for row in found)
    told = await sums(doomed, key.id)
    assert told["prompt_tokens"] + told["completion_tokens"] == used
