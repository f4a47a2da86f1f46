"""How a connection comes about, and why one does not."""

import asyncio
import socket

import pytest

from gateway.engines import Client, ConnectFailed, ConnectionLost, Exchange
from tests.engines.calls import call, until
from tests.engines.loops import on_each_loop
from tests.engines.networks import black_hole, resolve
from tests.fake_engine.handle import FakeEngine


def named(engine: FakeEngine, connect_timeout_seconds: float = 60.0) -> Client:
    """A client that knows the engine by a name."""
    url = f"http://engine.example:{engine.process.port}"
    return Client(url, connect_timeout_seconds=connect_timeout_seconds, keep_alive_seconds=600)


@on_each_loop
async def test_an_engine_that_refuses_is_a_failure_at_once(engine: FakeEngine) -> None:
    """An engine that is not listening: the cause is for the log."""
    await engine.listen(False)
    client = Client(engine.url, connect_timeout_seconds=60, keep_alive_seconds=600)
    with pytest.raises(ConnectFailed, match=r"refused|[Cc]onnect call failed"):
        await call(client)
    assert (client.in_flight, client.pool.open_connections) == (0, 0)


@on_each_loop
async def test_an_engine_that_does_not_answer_is_a_failure_in_time() -> None:
    """A machine that is switched off costs connect_timeout_seconds and no more."""
    loop = asyncio.get_running_loop()
    with black_hole() as port:
        client = Client(f"http://127.0.0.1:{port}", connect_timeout_seconds=0.3, keep_alive_seconds=4)
        began = loop.time()
        with pytest.raises(ConnectFailed, match=r"0\.3 s"):
            await call(client)
        assert 0.2 < loop.time() - began < 60  # the system itself gives up after two minutes
    assert (client.in_flight, client.pool.open_connections) == (0, 0)


@on_each_loop
async def test_a_name_server_that_does_not_answer_is_a_failure_in_time(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name's resolution is part of connect_timeout_seconds."""
    resolve(monkeypatch, None)
    with pytest.raises(ConnectFailed, match=r"0\.2 s"):
        await call(named(engine, connect_timeout_seconds=0.2))


@on_each_loop
async def test_a_name_that_is_not_known_is_a_failure(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a container that does not run."""
    resolve(monkeypatch, socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    with pytest.raises(ConnectFailed, match="not known"):
        await call(named(engine))


@on_each_loop
async def test_a_name_without_an_address_is_a_failure(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty answer is no crash."""
    resolve(monkeypatch, [])
    with pytest.raises(ConnectFailed, match="no address"):
        await call(named(engine))


@on_each_loop
async def test_each_new_connection_resolves_the_name_anew(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that moved is found; a kept connection asks nobody."""
    asked = resolve(monkeypatch, ["127.0.0.9"], ["127.0.0.1"])
    client = named(engine)
    with pytest.raises(ConnectFailed):
        await call(client)
    for _ in range(2):
        assert (await call(client))[0] == 200
    client.close()
    assert asked == ["engine.example", "engine.example"]


@on_each_loop
async def test_all_addresses_of_a_name_are_tried(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that takes the connection serves; `localhost` that means ::1 first is the usual case."""
    resolve(monkeypatch, ["127.0.0.8", "127.0.0.9", "127.0.0.1"])
    client = named(engine)
    assert (await call(client))[0] == 200
    client.close()


@on_each_loop
async def test_an_address_that_does_not_answer_leaves_time_for_the_others(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each address has its share of the time."""
    resolve(monkeypatch, ["127.0.0.7", "127.0.0.1"])
    client = named(engine, connect_timeout_seconds=1.0)
    with black_hole("127.0.0.7", engine.process.port):
        assert (await call(client))[0] == 200
    client.close()


@on_each_loop
async def test_a_connection_that_ended_before_it_was_used_is_lost(engine: FakeEngine) -> None:
    """Between the end of connecting and the first use there is time for that."""
    client = Client(engine.url, connect_timeout_seconds=60, keep_alive_seconds=600)
    connection = await client.connect()
    connection.abort()
    await until(lambda: client.pool.open_connections == 0)
    client.pool.opened(connection)
    assert client.pool.open_connections == 0
    exchange = Exchange(client, b"POST / HTTP/1.1\r\n\r\n", b"", is_head=False)
    exchange.start(connection, reused=False)
    with pytest.raises(ConnectionLost):
        await exchange.head()
    exchange.close()


@on_each_loop
async def test_a_connection_that_ends_as_soon_as_it_stands_is_lost(engine: FakeEngine) -> None:
    """Something listens and hangs up: not an engine that can be reached, and not one that hangs."""
    await engine.script([{"close": True}], at="connect")
    client = Client(engine.url, connect_timeout_seconds=60, keep_alive_seconds=600)
    for _ in range(30):  # The end may come before or after the request has been written.
        with pytest.raises(ConnectionLost):
            await call(client)
    await until(lambda: client.pool.open_connections == 0)
    assert client.in_flight == 0
