"""How the tests of the client speak to a fake engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from gateway.engines import Client, Exchange, Registry
from tests.fake_engine.handle import FakeEngine
from tests.running import PATIENCE_SECONDS

PATH = b"/v1/chat/completions"
HEADERS = [(b"content-type", b"application/json")]


@asynccontextmanager
async def client_of(engine: FakeEngine, **options: Any) -> AsyncIterator[Client]:
    """A client of this engine; nothing may be in flight when the test is done with it.

    It waits and keeps for so long that only what the test does can end a connection.
    """
    client = Client(engine.url, **{"connect_timeout_seconds": 60, "keep_alive_seconds": 600, **options})
    try:
        yield client
    finally:
        client.close()
    assert client.in_flight == 0
    assert client.pool.idle_connections == 0


async def post(
    client: Client, body: bytes = b"{}", *, headers: Sequence[tuple[bytes, bytes]] = HEADERS
) -> Exchange:
    """A request whose head has been answered; to be closed by the test."""
    exchange = await client.send(b"POST", PATH, headers, body)
    try:
        await exchange.head()
    except BaseException:
        exchange.close()
        raise
    return exchange


async def rest(exchange: Exchange) -> bytes:
    """The body, to its end."""
    parts = []
    while not exchange.complete:
        parts.append(await exchange.chunk())
    return b"".join(parts)


async def call(client: Client, body: bytes = b"{}") -> tuple[int, bytes]:
    """Status and body of one request, closed."""
    exchange = await post(client, body)
    try:
        return exchange.status, await rest(exchange)
    finally:
        exchange.close()


@asynccontextmanager
async def probed(registry: Registry) -> AsyncIterator[Registry]:
    """That registry, started, once all its engines have been looked at: a slow machine may take its time."""
    async with registry as known:
        await until(lambda: all(found.probed.is_set() for found in known._engines.values()))
        yield known


async def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until it holds; fails if it does not in time."""
    async with asyncio.timeout(max(seconds, PATIENCE_SECONDS)):
        while not condition():  # noqa: ASYNC110  # what is waited for here sends no event
            await asyncio.sleep(0.005)
