"""Bodies that are given to a callback as they are read, without waking a task for each piece."""

import asyncio

import pytest

from gateway.engines import BadResponse, ConnectionLost
from tests.engines.calls import call, client_of, post, until
from tests.engines.loops import on_each_loop
from tests.engines.test_responses import CHUNKED, WHOLE
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.fake_engine.scripts import send

MIB = 1 << 20


async def grown(poured: bytearray, events: int) -> None:
    """Wait until so many events have been poured, and make sure that there are no more."""
    await until(lambda: poured.count(b"data:") >= events)
    assert poured.count(b"data:") == events


@pytest.mark.parametrize("name", WHOLE)
@on_each_loop
async def test_the_sink_gets_every_kind_of_body(engine: FakeEngine, name: str) -> None:
    """The same bytes as `chunk` hands out, whatever ends the body."""
    steps, _, body = WHOLE[name]
    await engine.script(steps)
    async with client_of(engine) as client:
        exchange = await post(client)
        poured: list[bytes] = []
        await exchange.pour(poured.append)
        exchange.close()
        assert exchange.complete
        assert b"".join(poured) == body
        assert b"" not in poured


@on_each_loop
async def test_the_sink_gets_each_event_when_it_comes(engine: FakeEngine) -> None:
    """Nothing is held back until the body is whole, and the connection is kept afterwards."""
    await engine.script(scripts.stream(events=3, gate="next"), times=1)
    async with client_of(engine) as client:
        exchange = await post(client)
        poured = bytearray()
        pouring = asyncio.ensure_future(exchange.pour(poured.extend))
        for number in range(1, 4):
            await grown(poured, number)
            await engine.open_gate("next")
        await pouring
        assert poured.endswith(b"data: [DONE]\n\n")
        exchange.close()
        status, body = await call(client)
        assert (status, b"tok0" in body) == (200, True)
    assert (await engine.stats())["connections"] == 1


@pytest.mark.parametrize(
    ("end", "failure"),
    [
        ([{"close": True}], ConnectionLost),
        ([{"reset": True}], ConnectionLost),
        ([send(b"no chunk\r\n")], BadResponse),
    ],
)
@on_each_loop
async def test_what_came_before_a_failure_was_poured(
    engine: FakeEngine, end: scripts.Steps, failure: type[Exception]
) -> None:
    """The failure itself is raised where the pouring is awaited."""
    await engine.script([send(CHUNKED + b"3\r\nabc\r\n"), {"gate": "end"}, *end])
    async with client_of(engine) as client:
        exchange = await post(client)
        poured: list[bytes] = []
        pouring = asyncio.ensure_future(exchange.pour(poured.append))
        await until(lambda: poured)
        await engine.open_gate("end")
        with pytest.raises(failure):
            await pouring
        exchange.close()
        assert poured == [b"abc"]


@on_each_loop
async def test_a_paused_exchange_makes_the_engine_wait(engine: FakeEngine) -> None:
    """Back-pressure of the sink: nothing more comes until it can take more, then all of it."""
    head = send(answers.head(200, [("content-length", str(64 * MIB))]))
    await engine.script([head, {"send": "x" * 1024, "repeat": 64 * 1024}])
    async with client_of(engine) as client:
        exchange = await post(client)
        poured_bytes = 0

        def sink(data: bytes) -> None:
            nonlocal poured_bytes
            poured_bytes += len(data)
            if poured_bytes < 4 * MIB:
                return
            exchange.pause()

        pouring = asyncio.ensure_future(exchange.pour(sink))
        await until(lambda: poured_bytes >= 4 * MIB)
        assert not (await engine.reaches(0.5, answered=1))[0]
        assert poured_bytes < 8 * MIB
        while not pouring.done():
            exchange.resume()
            await asyncio.sleep(0)
        await pouring
        assert poured_bytes == 64 * MIB
        exchange.close()


@on_each_loop
async def test_a_sink_that_paused_at_the_end_leaves_a_connection_that_is_read(engine: FakeEngine) -> None:
    """The end of an idle connection is noticed, whatever its last exchange did."""
    await engine.script(scripts.then_eof(scripts.answer(b"hello"), gate="end"))
    async with client_of(engine, keep_alive_seconds=60) as client:
        exchange = await post(client)
        await exchange.pour(lambda _: exchange.pause())
        exchange.close()
        assert client.pool.idle_connections == 1
        await engine.open_gate("end")
        await until(lambda: client.pool.idle_connections == 0)


@on_each_loop
async def test_closing_a_paused_exchange_ends_its_pouring(engine: FakeEngine) -> None:
    """As a lost connection, and at once."""
    await engine.script(scripts.stream(events=1, end="hang"))
    async with client_of(engine) as client:
        exchange = await post(client)
        pouring = asyncio.ensure_future(exchange.pour(lambda _: exchange.pause()))
        connection = exchange._connection
        assert connection is not None
        await until(lambda: connection._held)
        exchange.close()
        with pytest.raises(ConnectionLost):
            await pouring
        await engine.wait(open=0)


@on_each_loop
async def test_a_cancelled_pouring_gives_its_sink_nothing_more(engine: FakeEngine) -> None:
    """And the engine sees the end at once."""
    await engine.script(scripts.stream(events=1, end="hang"))
    async with client_of(engine) as client:
        exchange = await post(client)
        poured: list[bytes] = []
        pouring = asyncio.ensure_future(exchange.pour(poured.append))
        await until(lambda: b"tok0" in b"".join(poured))
        pouring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pouring
        exchange.close()
        await engine.wait(aborted=1, open=0)
        assert client.pool.open_connections == 0


@on_each_loop
async def test_an_exchange_may_be_closed_by_its_sink(engine: FakeEngine) -> None:
    """Whoever takes the bytes may have enough of them."""
    await engine.script(scripts.stream(events=3, gate="next"))
    async with client_of(engine) as client:
        exchange = await post(client)
        with pytest.raises(ConnectionLost):
            await exchange.pour(lambda _: exchange.close())
        await engine.wait(aborted=1)
