"""How the tests of the client speak to a fake engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from gateway.engines import Client, Exchange
from tests.fake_engine.handle import FakeEngine

SECONDS = 5.0
PATH = b"/v1/chat/completions"
HEADERS = [(b"content-type", b"application/json")]


@asynccontextmanager
async def client_of(engine: FakeEngine, **options: Any) -> AsyncIterator[Client]:
    """A client of this engine; nothing may be in flight when the test is done with it."""
    client = Client(engine.url, **{"connect_timeout_seconds": 5, "keep_alive_seconds": 4, **options})
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


async def until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until it holds; fails if it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # what is waited for here sends no event
            await asyncio.sleep(0.005)
