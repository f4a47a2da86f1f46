"""Which connection a request takes, when one is kept, and when the request goes once more."""

import asyncio
from typing import Any

import pytest

from gateway.engines import Client, ConnectFailed, ConnectionLost
from tests.engines.calls import call, client_of, post, rest
from tests.engines.loops import on_each_loop
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.fake_engine.scripts import Steps, send

DIES: dict[str, Steps] = {"closes": [{"close": True}], "resets": [{"reset": True}]}
BEGINS: dict[str, Steps] = {
    "an interim response": [send(b"HTTP/1.1 100 Continue\r\n\r\n"), {"close": True}],
    "half a head": [send(b"HTTP/1.1 200 OK\r\ncontent"), {"close": True}],
    "half a body": [send(answers.head(200, [("content-length", "9")]) + b"half"), {"close": True}],
}
LAST: dict[str, Steps] = {
    "Connection: close": scripts.answer(b"hello", headers=[("Connection", "close")]),
    "close among others": scripts.answer(b"hello", headers=[("connection", "x, Close")]),
    "HTTP/1.0": [send(b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello")],
    "more than was asked": [send(answers.whole(b"hello") + b"HTTP/1.1 200")],
    "a second response": [send(answers.whole(b"hello") + answers.whole(b"evil"))],
}


def counting(**options: Any) -> tuple[list[int], dict[str, Any]]:
    """A list that grows with each retry, and the client's options for that."""
    retries: list[int] = []
    return retries, {"on_reconnect": lambda: retries.append(1), **options}


@on_each_loop
async def test_a_connection_is_used_again(engine: FakeEngine) -> None:
    """Requests one after the other share a connection, those at the same time do not."""
    async with client_of(engine) as client:
        for _ in range(3):
            await call(client)
        assert (await engine.stats())["connections"] == 1
        assert client.pool.idle_connections == client.pool.open_connections == 1
        await asyncio.gather(*[call(client) for _ in range(3)])
        assert (await engine.stats())["connections"] == 3
        assert client.pool.idle_connections == 3


@on_each_loop
async def test_the_connection_used_last_is_taken_first(engine: FakeEngine) -> None:
    """So that those which are not needed grow old and go."""
    await engine.script(scripts.gated("go", scripts.chat()), times=2)
    async with client_of(engine) as client:
        both = asyncio.gather(call(client), call(client))
        await engine.open_gate("go", 2)
        await both
        for _ in range(4):
            await call(client)
    assert len({request.connection for request in (await engine.requests())[2:]}) == 1


@pytest.mark.parametrize("name", LAST)
@on_each_loop
async def test_a_connection_that_must_not_be_used_again_is_closed(engine: FakeEngine, name: str) -> None:
    """The answer counts, the connection ends with it."""
    await engine.script(LAST[name], times=1)
    async with client_of(engine) as client:
        assert await call(client) == (200, b"hello")
        assert client.pool.idle_connections == 0
        await engine.wait(open=0)
        assert (await call(client))[0] == 200


@pytest.mark.parametrize("steps", [scripts.then_byte, scripts.then_eof])
@on_each_loop
async def test_whatever_happens_on_an_idle_connection_ends_it(engine: FakeEngine, steps: Any) -> None:
    """A byte that nobody asked for, or the end: the next request takes a fresh one and needs no retry."""
    retries, options = counting()
    await engine.script(steps(scripts.chat(), gate="now"), times=1)
    async with client_of(engine, keep_alive_seconds=60, **options) as client:
        await call(client)
        assert client.pool.idle_connections == 1
        await engine.open_gate("now")
        await engine.wait(open=0)
        assert client.pool.idle_connections == client.pool.open_connections == 0
        assert (await call(client))[0] == 200
    assert retries == []


@on_each_loop
async def test_an_idle_connection_is_closed_before_the_engine_would_do_it(engine: FakeEngine) -> None:
    """Each is gone once it has been idle for keep_alive_seconds, the older one first."""
    await engine.script(scripts.gated("go", scripts.chat()), times=2)
    async with client_of(engine, keep_alive_seconds=0.4) as client:
        calls = [asyncio.ensure_future(call(client)) for _ in range(2)]
        await engine.wait(running=2)
        await engine.open_gate("go")
        await engine.wait(open=1)  # The other one's call still runs: it has not been idle for a moment.
        assert client.pool.open_connections == 1
        await engine.open_gate("go")
        await asyncio.gather(*calls)
        await engine.wait(open=0)
        assert client.pool.idle_connections == 0


@on_each_loop
async def test_a_connection_that_has_just_ended_is_not_taken(engine: FakeEngine) -> None:
    """Between its end and the loop's word that it is lost there is no retry to pay either."""
    retries, options = counting()
    async with client_of(engine, **options) as client:
        await call(client)
        [idle] = client.pool._idle
        idle.abort()
        assert client.pool.idle_connections == 1
        await call(client)
    assert retries == []


@pytest.mark.parametrize("name", DIES)
@on_each_loop
async def test_a_kept_connection_that_fails_before_any_byte_is_replaced_once(
    engine: FakeEngine, name: str
) -> None:
    """The engine may close it while the request is on its way: the caller never knows, the counter does."""
    retries, options = counting()
    await engine.script(scripts.chat(), times=1)
    await engine.script(DIES[name], times=1)
    async with client_of(engine, **options) as client:
        await call(client)
        status, body = await call(client, b'{"max_tokens":1}')
        assert (status, b"tok0" in body) == (200, True)
    assert retries == [1]
    requests = await engine.requests()
    assert [request.body for request in requests] == [b"{}", b'{"max_tokens":1}', b'{"max_tokens":1}']
    assert [request.connection for request in requests] == [requests[0].connection] * 2 + [
        requests[2].connection
    ]


@pytest.mark.parametrize("name", DIES)
@on_each_loop
async def test_there_is_no_second_retry(engine: FakeEngine, name: str) -> None:
    """A fresh connection that fails too is the engine's fault."""
    retries, options = counting()
    await engine.script(scripts.chat(), times=1)
    await engine.script(DIES[name])
    async with client_of(engine, **options) as client:
        await call(client)
        with pytest.raises(ConnectionLost):
            await call(client)
    assert retries == [1]
    assert len(await engine.requests()) == 3


@pytest.mark.parametrize("name", DIES)
@on_each_loop
async def test_a_fresh_connection_that_fails_is_not_retried(engine: FakeEngine, name: str) -> None:
    """The engine may have begun to work on it."""
    retries, options = counting()
    await engine.script(DIES[name], times=1)
    async with client_of(engine, **options) as client:
        with pytest.raises(ConnectionLost):
            await call(client)
    assert retries == []
    assert len(await engine.requests()) == 1


@pytest.mark.parametrize("name", BEGINS)
@on_each_loop
async def test_after_a_byte_of_the_response_there_is_no_retry(engine: FakeEngine, name: str) -> None:
    """What has begun to be answered is being worked on, on a kept connection too."""
    retries, options = counting()
    await engine.script(scripts.chat(), times=1)
    await engine.script(BEGINS[name], times=1)
    async with client_of(engine, **options) as client:
        await call(client)
        with pytest.raises(ConnectionLost):
            await call(client)
    assert retries == []
    assert len(await engine.requests()) == 2


@on_each_loop
async def test_a_retry_that_finds_no_engine_says_so(engine: FakeEngine) -> None:
    """The engine went away for good: ConnectFailed, as if it had not been there before."""
    retries, options = counting()
    await engine.script(scripts.chat(), times=1)
    await engine.script([{"hang": True}])
    async with client_of(engine, **options) as client:
        await call(client)
        exchange = await client.send(b"POST", b"/v1/completions", [], b"{}")
        await engine.wait(running=1)
        await engine.listen(False)
        with pytest.raises(ConnectFailed):
            await exchange.head()
        exchange.close()
    assert retries == [1]


@on_each_loop
async def test_a_closed_client_lets_running_exchanges_end(engine: FakeEngine) -> None:
    """After a reload the old client's streams go on; its connections are not kept any more."""
    await engine.script(scripts.stream(events=2, gate="next"), times=1)
    client = Client(engine.url, connect_timeout_seconds=60, keep_alive_seconds=600)
    running = await post(client)
    await call(client)
    client.close()
    await engine.wait(open=1)
    await engine.open_gate("next", 2)
    assert (await rest(running)).endswith(b"data: [DONE]\n\n")
    running.close()
    await engine.wait(open=0)
    assert (await call(client))[0] == 200
    assert client.pool.idle_connections == 0
