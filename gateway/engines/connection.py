"""One socket to an engine: bytes in and out, HTTP/1.1 parsed by httptools. Retries and pooling are not here.

A chunk of a stream costs one call of `data_received`, one future and one wake-up: body bytes go from
the parser straight into a list, and a task is woken only if it waits. `complete` starts out true, so
that whatever arrives on an idle connection is recognised by the very check that a live one pays anyway.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import httptools

from gateway.engines.failures import BadResponse, ConnectionLost, EngineFailure
from gateway.engines.upload import Body, send
from gateway.errors import reason_of

if TYPE_CHECKING:
    from gateway.engines.pool import Pool

MAX_HEAD_BYTES: Final = 64 * 1024
HIGH_WATER_BYTES: Final = 256 * 1024
ONE_WRITE_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 256 * 1024

Headers = list[tuple[bytes, bytes]]
Failure = tuple[type[EngineFailure], str]


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time, from `begin` until the next `begin`.

    `status` is 0 until the head is whole, `parts` are the body bytes that nobody has taken yet,
    `complete` says that no more will come, `ended` why the connection can carry nothing more. While a
    `sink` is set, it gets body bytes as they are read, and a task is woken at the end alone.
    """

    __slots__ = (
        "_choked",
        "_drained",
        "_fed_bytes",
        "_feed",
        "_held",
        "_is_head",
        "_keeps_alive",
        "_loop",
        "_parser",
        "_pool",
        "_transport",
        "_unsent",
        "_upload",
        "_waiter",
        "complete",
        "ended",
        "headers",
        "on_body",
        "parts",
        "sink",
        "status",
    )

    _transport: asyncio.Transport

    def __init__(self, pool: "Pool", loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._unsent: memoryview | bytes = b""
        self._upload: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._choked = self._held = self._keeps_alive = self._is_head = False
        self._fed_bytes = 0
        self.status = 0
        self.headers: Headers = []
        self.parts: list[bytes] = []
        self.complete = True
        self.ended: Failure | None = None
        self.sink: Callable[[bytes], None] | None = None
        # The parser looks its callbacks up once: a bound list method saves a Python call per chunk.
        self.on_body = self.parts.append
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data

    # What an exchange uses

    def begin(self, head: bytes, body: Body, *, is_head: bool) -> None:
        """Write a request. Returns at once; a large body follows as fast as the engine reads it."""
        self.status = 0
        self.headers = []
        self.parts.clear()
        self.complete = self._keeps_alive = False
        self._is_head = is_head
        self._fed_bytes = 0
        if self.ended is not None:
            return
        if not isinstance(body, bytes):
            self._transport.write(head)
            self._upload = self._loop.create_task(send(body, self))
        elif len(body) <= ONE_WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._unsent = memoryview(body)
            self._write_on()

    def news(self) -> asyncio.Future[None]:
        """Done as soon as something has come or the connection has ended. For one waiter at a time."""
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def take(self) -> bytes:
        """All body bytes that have come, joined; there must be some."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._fed_bytes = 0
        self.resume()
        return data

    def pause(self) -> None:
        """Read nothing more until `resume`: whoever takes the bytes cannot take more now."""
        if not self._held:
            self._held = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._held:
            self._held = False
            if self.ended is None:
                self._transport.resume_reading()

    @property
    def answered(self) -> bool:
        """Whether any byte of a response has come since `begin`, of an interim one too."""
        return self._fed_bytes > 0 or self.status > 0

    @property
    def reusable(self) -> bool:
        """Whether the next request may go over this connection: both sides are done and want it."""
        return (
            self._keeps_alive
            and self.complete
            and self.ended is None
            and not self._unsent
            and self._upload is None
            and not self._transport.get_write_buffer_size()
        )

    def abort(self) -> None:
        """Close at once, so that the engine stops working on what nobody waits for."""
        self.break_off("closed by the gateway")

    # What an upload calls

    def put(self, piece: bytes) -> asyncio.Future[None] | None:
        """Write a piece of a body; answers what to wait for before the next one."""
        self._transport.write(piece)
        if not self._choked:
            return None
        self._drained = self._loop.create_future()
        return self._drained

    def put_all(self) -> None:
        """The body is whole: it is let go."""
        self._upload = None

    def break_off(self, reason: str) -> None:
        """Close at once: the body cannot be made whole."""
        self._end(ConnectionLost, reason)
        self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.complete:
            self.abort()  # It belongs to no request, and what it would do to the next one is not known.
            return
        self._fed_bytes += len(data)
        self._pool.reads += 1
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(reason_of(error))
        if self.sink is not None and self.parts:
            self.sink(self.take())
            if not self.complete:
                return
        self._wake()
        if self._fed_bytes > MAX_HEAD_BYTES:
            self._check_fed()

    def eof_received(self) -> None:
        if self.status and not self.complete and _ends_with_connection(self.headers):
            self.complete = True
        self._end(ConnectionLost, "closed by the engine")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionLost, reason_of(exc) if exc else "closed by the engine")
        del self._feed, self._parser  # They refer back here: the collector, which runs rarely, is not needed.
        self._pool.lost(self)

    def pause_writing(self) -> None:
        self._choked = True

    def resume_writing(self) -> None:
        self._choked = False
        self._write_on()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What the parser calls

    def on_message_begin(self) -> None:
        if self.complete:
            raise BadResponse("bytes after the end of the response")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # Later ones are trailers.
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        if self._fed_bytes > MAX_HEAD_BYTES and _size(self.headers) > MAX_HEAD_BYTES:
            raise BadResponse("head over 64 KiB")
        self.status = status
        if self._is_head:
            self.complete = True
            # The parser cannot be told that no body follows; it is stopped, and the connection not kept.
            raise BadResponse("end of an answer to HEAD")

    def on_message_complete(self) -> None:
        if not self.status:  # An interim response, 1xx: the real one follows.
            self.headers.clear()
            self.parts.clear()
            return
        self.complete = True
        self._keeps_alive = self._parser.should_keep_alive()

    # Details

    def _write_on(self) -> None:
        while self._unsent and not self._choked and self.ended is None:
            # b"" at the end: an empty view would keep the whole body as long as the connection.
            piece, self._unsent = self._unsent[:PIECE_BYTES], self._unsent[PIECE_BYTES:] or b""
            self._transport.write(piece)

    def _check_fed(self) -> None:
        if self.complete:
            return
        if not self.parts:
            self._refuse("over 64 KiB without a byte of a body")
        elif self._fed_bytes > HIGH_WATER_BYTES:
            self.pause()

    def _refuse(self, reason: str) -> None:
        self._end(BadResponse, reason)
        self._transport.abort()

    def _end(self, kind: type[EngineFailure], reason: str) -> None:
        if self.ended is None:
            self.ended = (kind, reason)
        self._unsent = b""
        if self._upload is not None:
            self._upload.cancel()
            self._upload = None
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)


def _ends_with_connection(headers: Headers) -> bool:
    """Whether a body has no other end than the connection's (RFC 9112, section 6.3)."""
    for name, value in headers:
        if name == b"content-length":
            return False
        if name == b"transfer-encoding" and value.lower().endswith(b"chunked"):
            return False
    return True
