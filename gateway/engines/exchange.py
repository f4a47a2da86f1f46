"""One request and its response, as the relay sees them, whatever connection carries them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from gateway.engines.connection import Connection, Failure, Headers
from gateway.engines.failures import ConnectionLost, EngineFailure
from gateway.engines.upload import Body

if TYPE_CHECKING:
    from gateway.engines.client import Client


class Exchange:
    """A request that is on its way and the response to it; used by one task.

    `status` and `headers` (names in lower case, in the engine's order) are set by `head`; `complete`
    turns true once all of the body has been handed out. Any await may be cancelled; `close` follows.
    """

    __slots__ = (
        "_body",
        "_client",
        "_closed",
        "_connection",
        "_is_head",
        "_request",
        "_reused",
        "complete",
        "headers",
        "status",
    )

    def __init__(self, client: "Client", request: bytes, body: Body, *, is_head: bool) -> None:
        self._client = client
        self._request = request
        self._body = body
        self._is_head = is_head
        self._connection: Connection | None = None
        self._reused = self._closed = False
        self.status = 0
        self.headers: Headers = []
        self.complete = False
        client.in_flight += 1

    def start(self, connection: Connection, *, reused: bool) -> None:
        """Write the request to a connection, which belongs to this exchange from now on."""
        self._connection = connection
        self._reused = reused
        connection.begin(self._request, self._body, is_head=self._is_head)

    async def head(self) -> None:
        """Wait for the status line and the headers; interim responses (1xx) are passed over.

        Raises ConnectionLost and BadResponse; ConnectFailed if the retry finds no engine.
        """
        connection = self._connection or _nowhere()
        while not connection.status:
            failure = connection.ended
            if failure is None:
                await connection.news()
            elif self._reused and not connection.answered:
                connection = await self._again()
            else:
                raise _error(failure)
        self._body = b""
        self.status = connection.status
        self.headers = connection.headers
        self.complete = connection.complete and not connection.parts

    async def chunk(self) -> bytes:
        """All body bytes that have come since the last call, at least one; b"" once the body is whole.

        To be called after `head`. Bytes that came before a failure are handed out before it is raised:
        ConnectionLost if the connection ended in mid-body, BadResponse if its framing is broken.
        """
        connection = self._connection or _nowhere()
        while not connection.parts:
            if connection.complete:
                self.complete = True
                return b""
            if connection.ended is not None:
                raise _error(connection.ended)
            await connection.news()
        data = connection.take()
        self.complete = connection.complete
        return data

    async def pour(self, sink: Callable[[bytes], None]) -> None:
        """Give `sink` the body's bytes as they are read, waking no task for them; return when it is whole.

        To be called after `head`, and instead of `chunk`. Raises as `chunk` does.
        """
        connection = self._connection or _nowhere()
        connection.sink = sink
        try:
            if connection.parts:
                sink(connection.take())
            while not connection.complete:
                if connection.ended is not None:
                    raise _error(connection.ended)
                await connection.news()
        finally:
            connection.sink = None
            connection.resume()
        self.complete = True

    def pause(self) -> None:
        """Take no more bytes from the engine for now: back-pressure of a `sink`."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Take bytes from the engine again."""
        if self._connection is not None:
            self._connection.resume()

    def close(self) -> None:
        """Give the connection back if the exchange is over, abort it otherwise. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._client.in_flight -= 1
        if self._connection is not None:
            self._client.pool.give_back(self._connection)
            self._connection = None

    async def _again(self) -> Connection:
        connection = await self._client.reconnect()
        if self._closed:
            connection.abort()
            _nowhere()
        self.start(connection, reused=False)
        return connection


def _error(failure: Failure) -> EngineFailure:
    kind, reason = failure
    return kind(reason)  # A new one each time: one that is kept would keep its traceback's frames too.


def _nowhere() -> NoReturn:
    raise ConnectionLost("the exchange is closed")
