"""The books balance: what callers were told, what the gateway booked and what the engine counted agree."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.public.metered import Limited, limited
from tests.real import bookings
from tests.real.bookings import Call, Callers
from tests.real.conftest import Real
from tests.real.engines import RealEngine
from tests.running import Gateway, http_client, sample, wait_for
from tests.usage_rows import Row, rows, sums

CALLS = 500
KEYS = 8
AT_ONCE = 24
SEED = 5
BURSTS = """
import random, sys, time
chance = random.Random(int(sys.argv[1]))
while True:
    until = time.monotonic() + chance.expovariate(1 / 1.5)
    while time.monotonic() < until:
        pass
    time.sleep(chance.expovariate(1 / 1.5))
"""
TOLERANCE = 0.1
LIMITS = {"rpm": 1_000_000, "tpm": 3_000_000, "max_parallel": CALLS, "tokens_per_day": 50_000_000}

Tokens = tuple[int, int]
"""Of prompts and of completions."""


@dataclass(frozen=True, slots=True)
class Books:
    """What became of all calls: as their callers saw it, as it was booked, and the engine's own counts."""

    calls: list[Call]
    keys: list[Limited]
    booked: dict[str, Row]  # by the id that the caller gave
    engine: Tokens

    def finished(self, key: int) -> list[Call]:
        """The calls of a key whose callers have read a whole answer."""
        return [call for call in self.calls if call.key == key and call.usage and not call.left]

    def left(self) -> list[Row]:
        """The rows of what was left before its end."""
        return [row for row in self.booked.values() if row["estimated"]]


async def counters(engine: RealEngine) -> Tokens:
    """How many tokens the engine has read and made, ever."""
    names = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
    prompt, completion = [int(await engine.metric(name)) for name in names]
    return prompt, completion


async def at_rest(gateway: Gateway) -> bool:
    """Whether the gateway works on nothing."""
    return await gateway.metric("gateway_inflight") == 0


async def spent(gateway: Gateway, model: str) -> Limited:
    """A key whose budget has been used by a call to a model."""
    key = await limited(gateway, tokens_per_day=1)
    assert await key.status(model=model, max_tokens=1) == 200
    return key


async def made(gateway: Gateway, real: Real, seed: int) -> Books:
    """500 calls of eight keys, a third of them left at random points, some refused; all have ended."""
    keys = [await limited(gateway, **LIMITS) for _ in range(KEYS)]
    all_keys = [*keys, await spent(gateway, real.chat.model)]
    calls = bookings.calls(seed, real.chat.model, CALLS, KEYS)
    await wait_for(real.chat.idle)
    before, requests = await counters(real.chat), await counted(gateway, all_keys)
    async with http_client() as http:
        await Callers(gateway.url, [key.key for key in all_keys], http, AT_ONCE).make(calls)
    await wait_for(real.chat.idle)
    await wait_for(lambda: at_rest(gateway))

    async def written() -> bool:
        found = [row for key in all_keys for row in rows(gateway, key.id) if row["caller_request_id"]]
        return len(found) == await counted(gateway, all_keys) - requests

    await wait_for(written)
    booked = {row["caller_request_id"]: row for key in all_keys for row in rows(gateway, key.id)}
    booked.pop(None)
    after = await counters(real.chat)
    return Books(calls, keys, booked, (after[0] - before[0], after[1] - before[1]))


@pytest.fixture(scope="module")
async def books(gateway: Gateway, real: Real) -> Books:
    """What became of the calls, on a machine that does nothing else."""
    return await made(gateway, real, SEED)


@contextmanager
def taken_away() -> Iterator[None]:
    """Other programs take the processors, now and then: three times as many as there are."""
    programs = [
        subprocess.Popen([sys.executable, "-c", BURSTS, str(number)])
        for number in range(3 * (os.cpu_count() or 1))
    ]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


async def counted(gateway: Gateway, keys: list[Limited]) -> float:
    """How many requests of these keys have ended."""
    return sum([await gateway.metric("gateway_key_requests_total", key=key.id) for key in keys])


def tokens(found: list[Row]) -> Tokens:
    """The sums of rows."""
    return sum(row["prompt_tokens"] for row in found), sum(row["completion_tokens"] for row in found)


async def test_finished_calls_are_booked_as_the_engine_counted_them(gateway: Gateway, books: Books) -> None:
    """To the token, call by call and in the sums that an operator reads."""
    for number, key in enumerate(books.keys):
        finished = books.finished(number)
        for call in finished:
            row = books.booked[call.id]
            assert (row["prompt_tokens"], row["completion_tokens"]) == call.usage, (call, row)
            assert (row["estimated"], row["status"], row["reason"]) == (0, 200, "ok")
        mine = [row for row in books.booked.values() if row["key"] == key.id]
        told = await sums(gateway, key.id)
        assert (told["prompt_tokens"], told["completion_tokens"]) == tokens(mine)
        assert told["requests"] == len(mine)
        assert told["estimated_tokens"] == sum(tokens([row for row in mine if row["estimated"]]))


async def test_calls_that_are_left_are_booked_as_what_the_engine_did_for_them(books: Books) -> None:
    """Together, within a tenth of the engine's own counters less what was told of the finished ones."""
    balances(books)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEED + 1, SEED + 6))
async def test_they_are_so_on_a_machine_that_does_much_else(gateway: Gateway, real: Real, seed: int) -> None:
    """An engine that is now fast, now slow: what plain answers had made is told by their time alone."""
    with taken_away():
        books = await made(gateway, real, seed)
    balances(books)


def balances(books: Books) -> None:
    """What is booked of calls that were left is what the engine did for them."""
    whole = tokens([row for row in books.booked.values() if not row["estimated"]])
    estimated = tokens(books.left())
    done = books.engine[0] - whole[0], books.engine[1] - whole[1]
    off = sum(estimated) / sum(done) - 1
    said = f"{off:+.1%}: of {len(books.left())} calls booked {estimated}, by the engine {done} (in, out)"
    logging.info(said)
    assert len(books.left()) > CALLS / 5, said
    assert abs(off) <= TOLERANCE, said


async def test_refused_calls_are_booked_without_tokens(books: Books) -> None:
    """Each with the status that its caller saw."""
    refused = [call for call in books.calls if call.status != 200 and not call.left]
    assert len(refused) > CALLS / 20
    for call in refused:
        row = books.booked[call.id]
        assert (row["status"], row["prompt_tokens"], row["completion_tokens"]) == (call.status, 0, 0)


async def test_nothing_is_held_at_rest(gateway: Gateway, books: Books) -> None:
    """No call is in flight, no slot is taken, no token reserved."""
    assert books.booked
    async with http_client() as http:
        told = (await http.get(gateway.ops + "/metrics")).text
    for name in ("gateway_inflight", "gateway_open_slots", "gateway_reserved_tokens"):
        assert f"# TYPE {name} gauge" in told
        assert sample(told, name) == 0
