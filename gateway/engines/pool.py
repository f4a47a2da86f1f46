"""The idle connections to one engine and the count of all of them. Opening one is the client's task."""

import asyncio

from gateway.engines.connection import Connection


class Pool:
    """Keeps connections for the next request, the last used first, none for longer than the engine does."""

    __slots__ = ("_closed", "_idle", "_keep_alive_seconds", "_loop", "_open", "_timer", "reads")

    def __init__(self, loop: asyncio.AbstractEventLoop, keep_alive_seconds: float) -> None:
        self._loop = loop
        self._keep_alive_seconds = keep_alive_seconds
        self._idle: dict[Connection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._open: set[Connection] = set()
        self.reads = 0  # how often bytes of answers have come: whether the engine is silent

    @property
    def open_connections(self) -> int:
        """How many connections stand, those in use among them."""
        return len(self._open)

    @property
    def idle_connections(self) -> int:
        """How many connections wait for a request."""
        return len(self._idle)

    def take(self) -> Connection | None:
        """A connection that was used before and seems alive, or None."""
        while self._idle:
            connection, since = self._idle.popitem()
            if connection.ended is None and self._loop.time() - since < self._keep_alive_seconds:
                return connection
            connection.abort()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep the connection if its exchange is over and both sides want it; close it otherwise."""
        if self._closed or not connection.reusable:
            connection.abort()
            return
        self._idle[connection] = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._keep_alive_seconds, self._sweep)

    def close(self) -> None:
        """Close what is idle now; what is in use is closed when it is given back."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            self._idle.popitem()[0].abort()

    def opened(self, connection: Connection) -> None:
        """A connection stands, unless it has ended already."""
        if connection.ended is None:
            self._open.add(connection)

    def lost(self, connection: Connection) -> None:
        """A connection is gone."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._idle:
            connection, since = next(iter(self._idle.items()))  # The one that is idle for longest.
            left = since + self._keep_alive_seconds - now
            if left > 0:
                self._timer = self._loop.call_later(left, self._sweep)
                return
            del self._idle[connection]
            connection.abort()
