"""Callers who stop reading, or stop in the midst of sending: dropped after a while, with all they held."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.callers import CHAT, Caller, ask, chat, request
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, wait_for

STALL_SECONDS = 1.0
STEPS = 8
MEGABYTE = b"x" * 1_000_000
BIG_EVENT = answers.event({"choices": [{"index": 0, "delta": {"content": "x" * 60_000}}]})
BIG_STREAM = [
    scripts.send(answers.stream_head()),
    {**scripts.send(answers.chunk(BIG_EVENT)), "repeat": 1000},  # more than all buffers on the way hold
]
BIG_ANSWER = scripts.answer(b'{"choices":[],"text":"' + b"x" * 30_000_000 + b'"}')


@pytest.fixture(scope="module")
async def strict(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway that waits a second for its callers, with room for one large body."""
    folder: Path = tmp_path_factory.mktemp("strict")
    environ = {
        "GATEWAY_UPSTREAM_URL": f"http://127.0.0.1:{fake_engine_process.port}",
        "GATEWAY_SERVER__CLIENT_STALL_SECONDS": str(STALL_SECONDS),
        "GATEWAY_SERVER__MAX_BODY_BYTES": "1500000",
        "GATEWAY_SERVER__MAX_BUFFERED_BYTES": "1500000",
    }
    async with Gateway(folder, **environ) as running:
        yield running


async def one_goes_well(attempt: Callable[[], Awaitable[None]]) -> None:
    """Whoever is cut for a machine that stood still may try again; a gateway that cuts does so each time."""
    for _ in range(4):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            return await attempt()
    return await attempt()


async def test_a_stream_that_nobody_reads_is_ended(strict: Gateway, fake_engine: FakeEngine) -> None:
    """After the stall time engine and slot are free, and the log says why; memory did not fill meanwhile."""
    key = (await strict.create_key(name="one", max_parallel=1))["key"]
    await fake_engine.script(BIG_STREAM)
    before = await strict.metric("process_resident_memory_bytes")
    async with Caller(strict) as stalled:
        started = time.monotonic()
        await stalled.send(chat(key, stream=True))
        assert (await stalled.head())[0] == 200
        await fake_engine.wait(running=1)
        refused = (await ask(strict, chat(key))).status == 429
        assert refused or time.monotonic() - started > STALL_SECONDS
        await fake_engine.wait(aborted=1)
        assert time.monotonic() - started > STALL_SECONDS * 0.9
        assert await strict.metric("process_resident_memory_bytes") - before < 20_000_000
    await fake_engine.reset()

    async def slot_is_free() -> bool:
        return (await ask(strict, chat(key))).status == 200

    await wait_for(slot_is_free)
    [line] = strict.events("caller_stalled")
    assert (line["why"], line["address"]) == ("read nothing", "127.0.0.1")
    assert any(line["reason"] == "client_closed" for line in strict.events("request"))


async def test_a_large_answer_that_nobody_reads_is_let_go(strict: Gateway, fake_engine: FakeEngine) -> None:
    """It was whole and its slot is free, but its bytes are still held."""
    await fake_engine.script(BIG_ANSWER)
    dropped = len(strict.events("caller_stalled"))
    async with Caller(strict) as stalled:
        await stalled.send(chat(strict.key))
        assert (await stalled.head())[0] == 200

        async def is_dropped() -> bool:
            return len(strict.events("caller_stalled")) > dropped

        await wait_for(is_dropped)
        assert len(await stalled.rest()) < 30_000_000


async def test_who_reads_slowly_but_reads_gets_all(strict: Gateway, fake_engine: FakeEngine) -> None:
    """Longer in all than the stall time: each bit that is read counts."""
    await fake_engine.script(BIG_ANSWER)

    async def read() -> None:
        async with Caller(strict) as slow:
            await slow.send(chat(strict.key))
            _, headers = await slow.head()
            started = time.monotonic()
            for _ in range(STEPS):
                await slow.exactly(int(headers["content-length"]) // STEPS)
                await asyncio.sleep(STALL_SECONDS * 0.3)
            assert time.monotonic() - started > STALL_SECONDS * 2

    await one_goes_well(read)


@pytest.mark.parametrize("path", [CHAT, "/healthz"])
async def test_a_body_that_stops_coming_is_given_up(
    strict: Gateway, fake_engine: FakeEngine, path: str
) -> None:
    """And what it held of the memory for bodies is there for the next one."""
    method = "POST" if path == CHAT else "GET"
    async with Caller(strict) as stalled:
        await stalled.send(request(method, path, [("x-api-key", strict.key), ("content-length", "1400000")]))
        started = time.monotonic()
        await stalled.send(MEGABYTE)
        await stalled.rest()
        assert time.monotonic() - started > STALL_SECONDS * 0.9
    assert strict.events("caller_stalled")[-1]["why"] == "sent no more of its body"
    assert (await ask(strict, chat(strict.key, padding=MEGABYTE.decode()))).status == 200
    assert len(await fake_engine.requests()) == 1


async def test_a_body_that_comes_slowly_is_waited_for(strict: Gateway) -> None:
    """Longer in all than the stall time."""
    head, body = chat(strict.key).split(b"\r\n\r\n", 1)

    async def send() -> None:
        async with Caller(strict) as slow:
            await slow.send(head + b"\r\n\r\n")
            for start in range(0, len(body), 20):
                await slow.send(body[start : start + 20])
                await asyncio.sleep(STALL_SECONDS * 0.45)
            assert (await slow.answer()).status == 200

    await one_goes_well(send)


async def test_an_idle_connection_is_no_stalled_one(strict: Gateway) -> None:
    """Between two calls nobody owes anything."""
    async with Caller(strict) as caller:
        for _ in range(2):
            await caller.send(chat(strict.key))
            assert (await caller.answer()).status == 200
            await asyncio.sleep(STALL_SECONDS * 1.3)
