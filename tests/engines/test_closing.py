"""What is left of an exchange that its caller gave up, and how fast the engine hears of it."""

import asyncio
from contextlib import suppress

import pytest

from gateway.engines import Client, ConnectionLost
from tests.engines.calls import HEADERS, PATH, call, client_of, post, rest, until
from tests.engines.loops import on_each_loop
from tests.engines.networks import black_hole
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine

MIB = 1 << 20


@on_each_loop
async def test_closing_in_mid_stream_ends_the_engines_work(engine: FakeEngine) -> None:
    """The engine sees the end of the connection although it never writes again."""
    await engine.script(scripts.stream(events=1, end="hang"))
    async with client_of(engine) as client:
        exchange = await post(client)
        await exchange.chunk()
        exchange.close()
        await engine.wait(aborted=1, open=0)


@on_each_loop
async def test_closing_before_the_first_byte_ends_the_engines_work(engine: FakeEngine) -> None:
    """A caller who leaves during the prefill costs no more of it."""
    await engine.script([{"hang": True}])
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, b"{}")
        await engine.wait(running=1)
        exchange.close()
        await engine.wait(aborted=1, open=0)


@on_each_loop
async def test_closing_while_the_body_is_being_written_ends_it(engine: FakeEngine) -> None:
    """What is still unsent is forgotten, whether the engine reads on or not."""
    await engine.script([{"gate": "read"}], at="head")
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, b"x" * 32 * MIB)
        await engine.wait(running=1)
        exchange.close()
        await until(lambda: client.pool.open_connections == 0)
        await engine.open_gate("read")
        await engine.wait(open=0)


@on_each_loop
async def test_a_whole_answer_that_nobody_read_leaves_nothing_behind(engine: FakeEngine) -> None:
    """The next request over the same connection gets its own answer."""
    await engine.script(scripts.answer(b"unread"), times=1)
    async with client_of(engine) as client:
        (await post(client)).close()
        status, body = await call(client)
        assert (status, b"unread" in body) == (200, False)


@on_each_loop
async def test_closing_twice_is_closing_once(engine: FakeEngine) -> None:
    """A connection that was given back and serves another request is not touched."""
    async with client_of(engine) as client:
        first = await post(client)
        await rest(first)
        first.close()
        await engine.script(scripts.stream(events=1, gate="next"))
        second = await post(client)
        first.close()
        await engine.open_gate("next")
        assert (await rest(second)).endswith(b"data: [DONE]\n\n")
        second.close()
    assert (await engine.stats())["connections"] == 1


@on_each_loop
async def test_a_closed_exchange_answers_no_more(engine: FakeEngine) -> None:
    """Asking it is an error, and wakes up whoever was still waiting."""
    await engine.script(scripts.stream(events=1, end="hang"))
    async with client_of(engine) as client:
        exchange = await post(client)
        while not (await exchange.chunk()).endswith(b'"finish_reason": null}]}\n\n'):
            pass
        waiting = asyncio.ensure_future(rest(exchange))
        await asyncio.sleep(0)
        exchange.close()
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(ConnectionLost):
            await exchange.chunk()


@on_each_loop
async def test_cancelling_at_any_await_leaks_nothing(engine: FakeEngine) -> None:
    """Wherever a request is cut, its connection is closed and nothing counts as in flight."""
    async with client_of(engine) as client:
        for turns in range(60):
            task = asyncio.ensure_future(call(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert client.in_flight == 0
            assert client.pool.open_connections - client.pool.idle_connections <= 1
        client.close()
        await engine.wait(open=0)
        assert client.pool.open_connections == 0


@on_each_loop
async def test_cancelling_a_retry_leaks_nothing(engine: FakeEngine) -> None:
    """The same for the awaits of the second attempt."""
    for turns in range(40):
        await engine.reset()
        await engine.script(scripts.chat(), times=1)
        await engine.script([{"close": True}], times=1)
        async with client_of(engine) as client:
            await call(client)
            task = asyncio.ensure_future(call(client))
            await engine.wait(requests=2)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await engine.wait(open=0)
        assert client.pool.open_connections == 0


@on_each_loop
async def test_cancelling_a_connection_attempt_leaks_nothing() -> None:
    """An engine that does not take connections holds no caller who has left."""
    with black_hole() as port:
        client = Client(f"http://127.0.0.1:{port}", connect_timeout_seconds=30, keep_alive_seconds=4)
        task = asyncio.ensure_future(client.send(b"POST", PATH, HEADERS, b"{}"))
        await until(lambda: client.in_flight == 1)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (client.in_flight, client.pool.open_connections) == (0, 0)


@on_each_loop
async def test_an_engine_is_not_read_faster_than_its_answer_is_taken(engine: FakeEngine) -> None:
    """A caller who reads nothing makes the engine wait instead of filling the gateway's memory."""
    head = scripts.send(answers.head(200, [("content-length", str(64 * MIB))]))
    await engine.script([head, {"send": "x" * 1024, "repeat": 64 * 1024}])
    async with client_of(engine) as client:
        exchange = await post(client)
        assert not (await engine.reaches(0.5, answered=1))[0]
        largest = 0
        taken = 0
        while not exchange.complete:
            data = await exchange.chunk()
            largest = max(largest, len(data))
            taken += len(data)
        exchange.close()
        await engine.wait(answered=1)
    assert taken == 64 * MIB
    assert largest <= MIB


@on_each_loop
async def test_a_connection_that_was_held_back_is_used_again(engine: FakeEngine) -> None:
    """Reading goes on once the answer is taken, so that an idle connection's end is still noticed."""
    head = scripts.send(answers.head(200, [("content-length", str(8 * MIB))]))
    await engine.script(scripts.then_eof([head, {"send": "x" * 1024, "repeat": 8 * 1024}], "end"), times=1)
    async with client_of(engine) as client:
        exchange = await post(client)
        connection = exchange._connection
        assert connection is not None
        await until(lambda: connection._held)
        await rest(exchange)
        exchange.close()
        assert client.pool.idle_connections == 1
        await engine.open_gate("end")
        await engine.wait(open=0)
        assert client.pool.idle_connections == 0
