"""A client for one engine: HTTP/1.1 over kept-alive connections, made for streams of many small chunks.

It knows nothing of models, health or callers. Its rules and their reasons:

- A kept connection may be closed by the engine at the very moment that a request is written to it. If
  it fails before any byte of a response, the request goes once more, over a fresh connection, and the
  retry is counted. A fresh connection that fails is the engine's fault, so there is no other retry.
- Closing an exchange that is not over aborts the socket: an engine stops generating when it sees that.
- A new connection resolves the name anew, so that an engine which moved is found, and gives each of
  its addresses a share of the time, so that one black hole among them does not use it up.
- Proxies named by the environment are not asked: an engine is inside the operator's own network.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence

from gateway.engines.address import parse
from gateway.engines.connection import Connection
from gateway.engines.exchange import Exchange
from gateway.engines.failures import BadResponse, ConnectFailed, ConnectionLost, EngineFailure
from gateway.engines.pool import Pool
from gateway.engines.upload import Body
from gateway.errors import reason_of

__all__ = ["BadResponse", "Client", "ConnectFailed", "ConnectionLost", "EngineFailure", "Exchange"]

WITHOUT_BODY = (b"GET", b"HEAD")
SPACE = ord(" ")
_FIELD = b": ".join


class Client:
    """Sends requests to one engine; to be made and used in one event loop."""

    __slots__ = (
        "_address",
        "_connect_timeout_seconds",
        "_end_of_line",
        "_loop",
        "_on_reconnect",
        "_ssl_context",
        "in_flight",
        "pool",
    )

    def __init__(
        self,
        url: str,
        *,
        connect_timeout_seconds: float,
        keep_alive_seconds: float,
        ssl_context: ssl.SSLContext | None = None,
        on_reconnect: Callable[[], object] | None = None,
    ) -> None:
        """`url` may hold a path, which is put before each target. `on_reconnect` is called on each retry.

        An https engine is always verified: by `ssl_context`, or else against the system's roots.
        Raises ValueError for what is no engine's URL.
        """
        self._address = address = parse(url)
        self._end_of_line = b" HTTP/1.1\r\nhost: " + address.authority
        self._ssl_context = None
        if address.secure:
            self._ssl_context = ssl_context or ssl.create_default_context()
        self._connect_timeout_seconds = connect_timeout_seconds
        self._on_reconnect = on_reconnect
        self._loop = asyncio.get_running_loop()
        self.pool = Pool(self._loop, keep_alive_seconds)
        self.in_flight = 0

    async def send(
        self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: Body = b""
    ) -> Exchange:
        """The exchange, its request handed to a connection. Always close it, also after an error.

        A Source is read until all is sent or the exchange closed, and from its start again on a retry.
        Only `host` and `content-length` are added to the headers, which must hold neither.
        Raises ConnectFailed, and ValueError for what would not be one request on the wire.
        """
        head = self._head(method, target, headers, body)
        exchange = Exchange(self, head, body, is_head=method == b"HEAD")
        connection = self.pool.take()
        if connection is not None:
            exchange.start(connection, reused=True)
            return exchange
        try:
            exchange.start(await self.connect(), reused=False)
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def reconnect(self) -> Connection:
        """A fresh connection in place of a kept one that turned out dead; counted."""
        if self._on_reconnect is not None:
            self._on_reconnect()
        return await self.connect()

    async def connect(self) -> Connection:
        """A fresh connection. Raises ConnectFailed."""
        try:
            async with asyncio.timeout(self._connect_timeout_seconds):
                return await self._connect_somewhere()
        except TimeoutError:
            raise ConnectFailed(f"no connection within {self._connect_timeout_seconds:g} s") from None
        except OSError as error:
            raise ConnectFailed(reason_of(error)) from error

    def close(self) -> None:
        """Close idle connections now and the others as their exchanges end. Sending still works."""
        self.pool.close()

    async def _connect_somewhere(self) -> Connection:
        deadline = self._loop.time() + self._connect_timeout_seconds
        found = await self._loop.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_STREAM)
        failure: OSError = OSError(f"{self._address.host} has no address")
        for index, (family, _, _, _, address) in enumerate(found):
            share_seconds = (deadline - self._loop.time()) / (len(found) - index)
            try:
                async with asyncio.timeout(share_seconds):
                    return await self._connect_to(str(address[0]), family)
            except OSError as error:
                failure = error
        raise failure

    async def _connect_to(self, address: str, family: int) -> Connection:
        _, connection = await self._loop.create_connection(
            lambda: Connection(self.pool, self._loop),
            address,
            self._address.port,
            family=family,
            ssl=self._ssl_context,
            server_hostname=self._address.host if self._ssl_context else None,
        )
        self.pool.opened(connection)
        return connection

    def _head(
        self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: Body
    ) -> bytes:
        lines = [method + b" " + self._address.base + target + self._end_of_line, *map(_FIELD, headers)]
        if body or method not in WITHOUT_BODY:
            size_bytes = len(body) if isinstance(body, bytes) else body.size_bytes
            lines.append(b"content-length: %d" % size_bytes)
        lines.append(b"\r\n")
        head = b"\r\n".join(lines)
        # One scan over the whole finds a stray CR, LF or NUL wherever it hides.
        if len(head.translate(None, b"\r\n\0")) != len(head) - 2 * len(lines) - 2:
            raise ValueError("a request line or header must hold no CR, LF or NUL")
        if SPACE in target or SPACE in method:
            raise ValueError("a method or target must hold no space")
        return head
