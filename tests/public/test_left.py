"""Calls that end before their time: what had been made of them is paid for, and nothing stays taken."""

import asyncio
import random

import pytest

from tests.callers import CHAT, Caller, chat
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.public.metered import TPM, Stopwatch, booked, having, limited, total
from tests.relay.calls import at_rest
from tests.running import Gateway, wait_for
from tests.usage_rows import rows, sums


def _until_finish() -> scripts.Steps:
    """Ten tokens and the finish reason, and the usage only when it is too late."""
    *said, usage = map(answers.chunk, answers.events("fake-model", 10, with_usage=True))
    return [*map(scripts.send, [answers.stream_head(), *said]), {"gate": "never"}, scripts.send(usage)]


@pytest.mark.parametrize(
    ("script", "read", "tokens"),
    [
        (_until_finish(), b'"finish_reason": "stop"}]}\n\n', range(9, 13)),
        (scripts.stream(10, end="hang"), b"tok9 ", range(9, 13)),
        (scripts.stream(1, end="hang"), b"tok0 ", range(1, 4)),
        (scripts.gated("never", scripts.stream(10)), b"", range(1)),
    ],
    ids=["just before the usage", "in the middle", "after the first token", "before the first token"],
)
async def test_a_stream_that_is_left_costs_what_was_made_of_it(
    metered: Gateway, fake_engine: FakeEngine, script: scripts.Steps, read: bytes, tokens: range
) -> None:
    """Its prompt and the tokens that had come by then, marked as an estimate; not those it asked for."""
    await fake_engine.script(script)
    key = await limited(metered, tpm=TPM, max_parallel=1)
    watch = Stopwatch()
    async with Caller(metered) as caller:
        await caller.send(chat(key.key, stream=True, max_tokens=1000))
        await fake_engine.wait(requests=1)
        if read:
            await caller.until(read)
    await fake_engine.wait(aborted=1)
    [row] = await booked(key)
    assert having(row, estimated=1, reason="client_closed")
    assert 1 <= row["prompt_tokens"] <= 40
    assert row["completion_tokens"] in tokens
    assert TPM - total(row) <= (await key.left())["tokens"] <= TPM - total(row) + watch.refill(TPM)
    assert (await sums(metered, key.id))["estimated_tokens"] == total(row)
    await fake_engine.reset()
    assert await key.status() == 200


async def test_a_plain_call_that_is_left_costs_its_prompt_and_at_most_its_cap(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """What it had made by then is known to the engine alone."""
    await fake_engine.script([{"hang": True}])
    key = await limited(metered, tpm=TPM)
    async with Caller(metered) as caller:
        await caller.send(chat(key.key, max_tokens=16))
        await fake_engine.wait(requests=1)
    [row] = await booked(key)
    assert having(row, estimated=1, status=499, reason="client_closed")
    assert row["prompt_tokens"] > 0
    assert row["completion_tokens"] <= 16


async def test_a_stream_that_breaks_costs_what_had_come(metered: Gateway, fake_engine: FakeEngine) -> None:
    """The engine's fault, but its work all the same."""
    await fake_engine.script(scripts.stream(5, end="reset"))
    key = await limited(metered, tpm=TPM)
    await key.ask(stream=True)
    [row] = await booked(key)
    assert having(row, estimated=1, reason="engine_error")
    assert row["completion_tokens"] in range(4, 8)


@pytest.mark.parametrize("stream", [False, True])
async def test_fifty_callers_in_a_row_leave_no_slot_taken(
    metered: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """After each of them the one slot of its key is there for the next call."""
    key = await limited(metered, max_parallel=1)
    for departures in range(1, 51):
        await fake_engine.script(scripts.stream(2, end="hang") if stream else [{"hang": True}], times=1)
        async with Caller(metered) as caller:
            await caller.send(chat(key.key, stream=stream))
            await fake_engine.wait(requests=2 * departures - 1)
            if stream:
                await caller.until(b"tok1 ")
        await fake_engine.wait(aborted=departures)
        assert await key.status() == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_revoked_key_pays_for_what_it_had_begun(
    metered: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """Its running call is cut, its slot free, its row under its name; the next call is a 401."""
    await fake_engine.script(scripts.stream(4, end="hang") if stream else [{"hang": True}])
    key = await limited(metered, max_parallel=1, tpm=TPM)
    async with Caller(metered) as caller:
        await caller.send(chat(key.key, stream=stream))
        await fake_engine.wait(requests=1)
        if stream:
            await caller.until(b"tok3 ")
        assert (await metered.admin("DELETE", f"/admin/keys/{key.id}")).status_code == 200
        await fake_engine.wait(aborted=1)
        assert await key.status() == 401
    [row] = await booked(key)
    assert having(row, estimated=1, reason="invalid_api_key", route=CHAT, model="fake-model")
    assert not stream or row["completion_tokens"] in range(3, 7)
    await wait_for(lambda: at_rest(metered))


FATES: tuple[scripts.Steps, ...] = (
    scripts.chat(), scripts.stream(5), scripts.stream(3, end="reset"), scripts.stream(3, end="no_done"),
    scripts.stream(2, end="hang"), [{"hang": True}], [{"reset": True}], [{"close": True}], scripts.html_502(),
    scripts.error(500, "boom"), scripts.error(429, "full"), scripts.error(400, "bad"), scripts.garbage(),
    scripts.gated("never", scripts.chat()), scripts.answer("<html>", content_type="text/html"),
)  # fmt: skip


async def test_whatever_becomes_of_calls_nothing_stays_taken(
    metered: Gateway, fake_engine: FakeEngine
) -> None:
    """300 at once, of an engine that fails in all ways, their callers leaving sooner or later."""
    chance = random.Random(5)  # noqa: S311  the same calls each time
    key = await limited(metered, rpm=100_000, tpm=100 * TPM, max_parallel=300, tokens_per_day=100 * TPM)
    for _ in range(300):
        await fake_engine.script(chance.choice(FATES), times=1)
    gates = [asyncio.Event() for _ in range(3)]

    async def make(sent: bytes, gate: asyncio.Event) -> None:
        async with Caller(metered) as caller:
            await caller.send(sent)
            await gate.wait()

    sent = [chat(key.key, stream=chance.random() < 0.7, max_tokens=50) for _ in range(300)]
    calls = [asyncio.create_task(make(one, gates[number % 3])) for number, one in enumerate(sent)]
    gates[0].set()
    await fake_engine.wait(requests=50)
    gates[1].set()
    await fake_engine.wait(requests=100)
    gates[2].set()
    await asyncio.gather(*calls)
    await wait_for(lambda: nothing_held(metered))
    found = rows(metered, key.id)
    assert len({row["request_id"] for row in found}) == len(found) <= 300


async def nothing_held(gateway: Gateway) -> bool:
    """Whether no call holds anything of any limit."""
    names = ("gateway_inflight", "gateway_open_slots", "gateway_reserved_tokens")
    return sum([await gateway.metric(name) for name in names]) == 0
