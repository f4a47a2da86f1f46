"""uvicorn's httptools protocol with bounds before authentication, and with departures told at once.

Over 64 KiB or 100 headers: 431 and close. No complete head within 10 s: close. A caller who reads nothing,
or stops in the midst of a body, for `client_stall_seconds`: dropped. The application is told of a lost
connection by a callback under `scope["extensions"]`: a task per request that waits for
`http.disconnect` would cost more.

What the parser would let pass and is stopped here: trailers, which it would add to the headers of a
request that was judged already; an Upgrade, after which it takes the body for another protocol's bytes
(or, if they come later, for the next request); and pipelines without end, each request of which would
be held in memory.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import httptools
import structlog
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.app import refusals
from gateway.app.cycle import Cycle
from gateway.errors import GatewayError
from gateway.public.respond import LINGER_BYTES, LINGER_SECONDS
from gateway.relay import CALLER

MAX_HEAD_BYTES = 65_536
MAX_HEADERS = 100
MAX_PIPELINED = 32
HEAD_SECONDS = 10.0
_NOWHERE: Any = deque(maxlen=0)  # takes trailers and keeps none
_log = structlog.get_logger("gateway.connection")


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a caller."""

    client_stall_seconds = 60.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_open = True
        self._idle_bytes = 0  # since the last byte of a body or end of a message
        self._read_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._refusal: GatewayError | None = None
        self._thrown_bytes = 0
        self._callbacks: list[Callable[[], None]] = []
        self._writable: Callable[[], None] | None = None
        self._write: Callable[[bytes], None] = _nowhere
        self._running: RequestResponseCycle | None = None  # known while others wait behind it

    # What the application sees of the connection.

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call back once if the connection ends before the current response is complete."""
        self._callbacks.append(callback)

    def write(self, data: bytes) -> bool:
        """Body bytes of the current response, as a chunk; answers whether more may follow now."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data))
        return not self.flow.write_paused

    def on_writable(self, callback: Callable[[], None]) -> None:
        """Call back each time the caller has read enough, until the response is complete."""
        self._writable = callback

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    # asyncio's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._write = transport.write
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._write = (
            _nowhere  # an engine's bytes may be on their way here, and uvloop's transport would raise
        )
        if self._running is not None:
            self._running.disconnected = True  # uvicorn marks the last of a pipeline alone
        self._unset_keepalive_if_required()
        self._stop_read_timer()
        self._stop_stall_timer()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._throw_away(len(data))
            return
        self._unset_keepalive_if_required()
        self._idle_bytes += len(data)
        self._feed(data)
        if self._refusal is None and (self._idle_bytes or not self._head_open):
            self._wait_for_the_rest()
        if self._refusal is not None:
            self._refuse(self._refusal)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()
        if self._writable is not None:
            self._writable()

    # The parser's side

    def on_headers_complete(self) -> None:
        self._head_open = False
        self._stop_read_timer()
        if self._refusal is not None:
            return
        if len(self.headers) > MAX_HEADERS or self._head_too_large():
            self._refusal = refusals.head_too_large(MAX_HEAD_BYTES, MAX_HEADERS)
        elif len(self.pipeline) >= MAX_PIPELINED:
            self._refusal = refusals.too_many(MAX_PIPELINED)
        elif not self.parser.should_upgrade():
            before = self.cycle
            self.scope["extensions"] = {CALLER: self}  # type: ignore[dict-item]  # of our own, not of the spec
            super().on_headers_complete()
            self.headers = _NOWHERE
            if len(self.pipeline) == 1:
                self._running = before

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        if self._refusal is None and not self.cycle.response_complete:
            super().on_body(body)
        else:
            self._throw_away(len(body))

    def on_message_complete(self) -> None:
        if self.headers is _NOWHERE:  # its head was taken, so the cycle is this message's
            self.cycle.more_body = False
            self.cycle.message_event.set()
            if not self.pipeline:  # a large last piece paused it, and who does not read sees nobody leave
                self.flow.resume_reading()
        if self._read_timer is not None:
            self._stop_read_timer()
        self._head_open = True
        self._idle_bytes = 0

    def on_response_complete(self) -> None:
        self._callbacks.clear()
        self._writable = None
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.__class__ = Cycle
        super()._start_asgi_task(cycle, app)

    # Details of what comes in

    def _feed(self, data: bytes) -> None:
        while self._refusal is None:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_upgrade() + data[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self._refusal = refusals.not_http(error)
            else:
                return

    def _without_upgrade(self) -> bytes:
        """The head once more, to be read as a plain request: nobody has to take up an offered Upgrade."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self._refusal = refusals.not_http("CONNECT")
        fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, b"".join(fields))

    def _head_too_large(self) -> bool:
        if self._idle_bytes <= MAX_HEAD_BYTES:  # counts some of the body too, so it is looked at twice
            return False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        return size > MAX_HEAD_BYTES

    def _wait_for_the_rest(self) -> None:
        """A message is not whole: its head has ten seconds in all, its body as long as it moves."""
        if self._head_open:
            self._wait_for_head()
        else:
            self._stop_read_timer()
            self._read_timer = self.loop.call_later(self.client_stall_seconds, self._stop_waiting)
        if self._idle_bytes > MAX_HEAD_BYTES:
            self._refusal = refusals.head_too_large(MAX_HEAD_BYTES, MAX_HEADERS)

    def _wait_for_head(self) -> None:
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(HEAD_SECONDS, self.abort)

    def _stop_waiting(self) -> None:
        if self.flow.read_paused:  # it is us who do not read
            self._wait_for_the_rest()
        else:
            self._drop("sent no more of its body")

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    # Details of refusals

    def _refuse(self, error: GatewayError) -> None:
        """Answer in the place of the request that is at fault, or end the connection where none can stand."""
        self._stop_read_timer()
        cycle = self.cycle
        if cycle is not None and cycle.more_body:
            if cycle.response_started or self.pipeline:
                self.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        elif cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False  # what came before is answered, and then it ends
            return
        self.transport.write(refusals.response(error, self.client))
        self._read_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _throw_away(self, size_bytes: int) -> None:
        """Read on for a moment: closing at once would reset the answer away."""
        self._thrown_bytes += size_bytes
        if self._thrown_bytes <= LINGER_BYTES:
            return
        if self._refusal is not None and self._read_timer is not None:
            self.flow.pause_reading()  # until the time is over: a caller who still sends may look up
        else:
            self.abort()

    # Details of callers who do not read

    def _watch_reader(self, unread_bytes: int) -> None:
        self._stop_stall_timer()
        self._stall_timer = self.loop.call_later(self.client_stall_seconds, self._look, unread_bytes)

    def _look(self, unread_bytes: int) -> None:
        now_unread = self.transport.get_write_buffer_size()
        if now_unread < unread_bytes:
            self._watch_reader(now_unread)
        else:
            self._drop("read nothing")

    def _drop(self, why: str) -> None:
        address = self.client[0] if self.client else None
        _log.warning("caller_stalled", why=why, seconds=self.client_stall_seconds, address=address)
        self.abort()

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _nowhere(_data: bytes) -> None:
    """There is no connection."""
