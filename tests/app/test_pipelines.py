"""Requests that are sent before the answer to the one before has come: in order, and not without end."""

import asyncio

from tests.callers import Caller, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

HEALTH = request("GET", "/healthz")
MOST_WAITING = 32
HELD_BYTES = 30_000_000  # of many more that are sent


async def test_pipelined_calls_are_answered_in_order(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Plain, streamed, refused and slow ones, each whole, whatever is ready first."""
    await fake_engine.script(scripts.after(0.2, scripts.chat("slow")), times=1)
    calls = [
        (chat(gateway.key), b"slow"), (chat(gateway.key, stream=True), b"[DONE]"), (HEALTH, b"ok"),
        (chat(gateway.key, model="nope"), b"model_not_found"),
        (chat(gateway.key, b"no json"), b"invalid_json"),
        (request("GET", "/v1/models", [("x-api-key", gateway.key)]), b"fake-model"),
        (chat(gateway.key), b"tok4"),
    ]  # fmt: skip
    async with Caller(gateway) as caller:
        await caller.send(b"".join(data for data, _ in calls))
        for _, expected in calls:
            assert expected in (await caller.answer()).body


async def test_what_is_no_http_behind_a_call_does_not_spoil_its_answer(gateway: Gateway) -> None:
    """A body longer than it was said to be: the call is answered, and then the connection ends."""
    async with Caller(gateway) as caller:
        await caller.send(chat(gateway.key) + b"}} more than was announced")
        assert (await caller.answer()).status == 200
        assert await caller.rest() == b""


async def test_a_call_behind_a_refused_one_is_not_served(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """The early refusal ends the connection, and says so."""
    async with Caller(gateway) as caller:
        await caller.send(chat("wrong") + chat(gateway.key))
        assert (await caller.answer()).headers["connection"] == "close"
        assert await caller.rest() == b""
    assert await fake_engine.requests() == []


async def test_who_leaves_a_pipeline_takes_all_of_it_away(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """The running call ends at the engine, those behind it are not begun, and nobody calls it an error."""
    await fake_engine.script([{"hang": True}])
    async with Caller(gateway) as caller:
        await caller.send(chat(gateway.key) * 5)
        await fake_engine.wait(running=1)
    await fake_engine.wait(aborted=1, running=0)
    await ask(gateway, HEALTH)
    assert len(await fake_engine.requests()) == 1
    assert '"level":"error"' not in gateway.log()


async def test_a_flood_on_one_connection_is_cut_short(gateway: Gateway) -> None:
    """A few are answered at most, then it ends; neither memory nor other callers pay for a million requests.

    Answers that were under way when it ended are lost with the connection.
    """
    before = await gateway.metric("process_resident_memory_bytes")
    flood = asyncio.create_task(pour(gateway, HEALTH * 5_000, 300))
    for _ in range(20):
        assert (await ask(gateway, HEALTH)).status == 200
    assert await flood <= MOST_WAITING + 1
    assert (
        await gateway.metric("process_resident_memory_bytes") - before < 30_000_000
    )  # of the many more that are sent


async def test_a_flood_behind_a_running_call_is_cut_short(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Nothing is answered yet, so all of it would have to be kept."""
    before = await gateway.metric("process_resident_memory_bytes")
    await fake_engine.script([{"hang": True}])
    await pour(gateway, chat(gateway.key) + HEALTH * 50_000, 60)
    await fake_engine.wait(aborted=1)
    assert (
        await gateway.metric("process_resident_memory_bytes") - before < 30_000_000
    )  # of the many more that are sent


async def pour(gateway: Gateway, piece: bytes, pieces: int) -> int:
    """Send and read at once until the gateway ends it; how many answers there were."""
    async with Caller(gateway) as caller:
        received = asyncio.create_task(caller.rest())
        try:
            for _ in range(pieces):
                await caller.send(piece)
        except ConnectionError:
            pass
        return (await received).count(b"HTTP/1.1 200 OK")
