"""One stream on its way: engine bytes in, the caller's bytes out, and an end that says what happened.

Bytes pass in the callback that read them; the call's own task sleeps until the end. Back-pressure goes
the whole way: a caller who reads slowly stops the reading from the engine.
"""

import asyncio
import math
import time
from dataclasses import dataclass

from starlette.types import Send

from gateway.engines import Exchange
from gateway.errors import ClientClosed, EngineError, GatewayError
from gateway.relay.call import Call
from gateway.relay.caller import Caller
from gateway.relay.events import EventStream

HEARTBEAT = b": heartbeat\n\n"
FAREWELL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long either side may hear nothing, in seconds; 0 heartbeats: none."""

    idle_seconds: float
    heartbeat_seconds: float


class Stream:
    """Passes one stream. `pass_on` while the engine speaks, then `end`, once."""

    def __init__(
        self, call: Call, caller: Caller, exchange: Exchange, events: EventStream, pace: Pace
    ) -> None:
        self._call = call
        self._caller = caller
        self._exchange = exchange
        self._events = events
        self._idle_seconds = pace.idle_seconds
        self._beat_seconds = pace.heartbeat_seconds or math.inf

    @property
    def complete(self) -> bool:
        """Whether the caller has a whole answer."""
        return self._events.complete

    async def pass_on(self) -> None:
        """Relay until the engine's last byte. Raises what the exchange raises."""
        call = self._call
        call.beat = self._beat
        call.beat_due = time.monotonic() + self._beat_seconds
        self._caller.on_writable(self._read_on)
        try:
            await self._exchange.pour(self._take)
        finally:
            call.due = call.beat_due = math.inf
            self._note()
        last = self._events.end()
        if last:
            self._caller.write(last)

    async def end(self, send: Send, error: GatewayError | None) -> None:
        """End the body; with an error, so that no caller takes the answer for a whole one."""
        call, events = self._call, self._events
        call.finished = True
        self._note()
        if events.engine_error is not None:
            call.record.fail(EngineError.code, events.engine_error)
        if error is None:
            await send({"type": "http.response.body", "body": b""})
            return
        call.record.fail(error.code, error.cause)
        if isinstance(error, ClientClosed):
            return
        async with asyncio.timeout(FAREWELL_SECONDS):
            await send({"type": "http.response.body", "body": events.farewell(error)})

    def _note(self) -> None:
        """What the record shall say of the stream so far: counts are the last word once it is complete."""
        record, events = self._call.record, self._events
        record.data_events = events.data_events
        record.usage = events.usage
        record.estimated = events.outdated or not events.complete

    def _take(self, data: bytes) -> None:
        call, events = self._call, self._events
        seen = events.data_events
        data = events.feed(data)
        now = time.monotonic()
        if events.data_events != seen:
            if not call.record.first_token:
                call.record.first_token = now
            call.due = now + self._idle_seconds
        if data:
            call.beat_due = now + self._beat_seconds
            if not self._caller.write(data):
                call.due = call.beat_due = math.inf  # nobody is silent: the caller does not read
                self._exchange.pause()

    def _read_on(self) -> None:
        if self._call.finished:
            return
        self._exchange.resume()
        now = time.monotonic()
        self._call.due = now + self._idle_seconds
        self._call.beat_due = now + self._beat_seconds

    def _beat(self) -> None:
        """A comment line, where one can stand: between events, and never after an `id:` line."""
        self._call.beat_due = time.monotonic() + self._beat_seconds
        if self._events.at_boundary and not self._events.has_ids:
            self._caller.write(HEARTBEAT)
