"""Many at once: each is served, none can keep the others out, and nothing is left when they have gone."""

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.callers import CHAT, Caller, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, wait_for

FLOOD = 500
HEAD_SECONDS = 10  # after which the gateway ends those that have not sent a whole head


@pytest.fixture(scope="module")
async def few_files(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway that was started where a process may open 256 files, or more if it asks."""
    folder: Path = tmp_path_factory.mktemp("few")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nulimit -Sn 256\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    async with Gateway(folder, python=str(python), GATEWAY_UPSTREAM_URL=url) as running:
        yield running


async def at_rest(gateway: Gateway) -> bool:
    """Whether no call is with the engine and no more sockets are open than this question needs."""
    return await gateway.metric("gateway_inflight") == 0 and await gateway.metric("process_open_fds") < 60


async def test_500_streams_at_once_are_served_whole(few_files: Gateway, fake_engine: FakeEngine) -> None:
    """A thousand sockets, where only 256 files were allowed at the start."""
    await fake_engine.script(scripts.stream(2, gate="all"))
    calls = [asyncio.create_task(ask(few_files, chat(few_files.key, stream=True))) for _ in range(FLOOD)]
    await fake_engine.wait(running=FLOOD)
    assert await few_files.metric("gateway_inflight") == FLOOD
    await fake_engine.open_gate("all", 2 * FLOOD)
    for call in calls:
        answer = await call
        assert answer.status == 200
        assert answer.body.endswith(b"data: [DONE]\n\n")
    await fake_engine.reset()
    await wait_for(lambda: at_rest(few_files))


async def test_slow_heads_and_idle_connections_keep_nobody_out(
    few_files: Gateway, fake_engine: FakeEngine
) -> None:
    """Hundreds that say nothing, or half of a head, or half of a body: calls are served beside them."""
    waited = []
    for _ in range(3):  # a machine that stands still delays one of them
        waited.append(await _seconds_beside(few_files))
        if waited[-1] < HEAD_SECONDS:
            break
    assert min(waited) < HEAD_SECONDS
    assert len(await fake_engine.requests()) == 20 * len(waited)
    await fake_engine.reset()
    await wait_for(lambda: at_rest(few_files))


async def _seconds_beside(gateway: Gateway) -> float:
    """How long 20 calls take beside hundreds that do not come to their end, from the first of those on."""
    beginnings = [b"", b"GET /healthz HTTP/1.1\r\n", chat(gateway.key)[:-5], chat("wrong")[:-5]]
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        for number in range(FLOOD):
            caller = await stack.enter_async_context(Caller(gateway))
            await caller.send(beginnings[number % len(beginnings)])
        for _ in range(20):
            assert (await ask(gateway, chat(gateway.key))).status == 200
        return time.monotonic() - began


async def test_callers_who_leave_at_any_point_leave_nothing(
    few_files: Gateway, fake_engine: FakeEngine
) -> None:
    """In the head, in the body, while waiting, in the stream: every slot and socket is free afterwards."""
    await fake_engine.script(scripts.stream(5, pace=0.02))
    chance = random.Random(7)  # noqa: S311  for variety, not for secrecy

    async def leave() -> None:
        data = chat(few_files.key, stream=chance.random() < 0.5)
        async with Caller(few_files) as caller:
            await caller.send(data[: chance.randrange(len(data) * 2)])
            await asyncio.sleep(chance.random() * 0.2)

    for _ in range(5):
        await asyncio.gather(*(leave() for _ in range(FLOOD // 5)))
    await fake_engine.wait(running=0)
    await fake_engine.reset()
    await wait_for(lambda: at_rest(few_files), evidence=few_files.log)
    assert '"level":"error"' not in few_files.log()


async def test_wrong_keys_in_a_flood_are_all_refused(few_files: Gateway, fake_engine: FakeEngine) -> None:
    """With bodies that are still on their way."""

    async def knock() -> int:
        head = request("POST", CHAT, [("x-api-key", "wrong"), ("content-length", "100000")])
        async with Caller(few_files) as caller:
            await caller.send(head)
            return (await caller.answer()).status

    assert set(await asyncio.gather(*(knock() for _ in range(FLOOD)))) == {401}
    assert await fake_engine.requests() == []
