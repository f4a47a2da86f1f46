"""One call on its way, and the calls that are open now: whoever must end one does it here.

A call is cut by cancelling its own task with a reason noted first; every await of the relay can be
cut that way, be it a connection attempt, the engine's silence or a caller who reads nothing. The
relay alone turns the reason into what the caller sees.

How long an engine may be silent is a number that is written as bytes pass; one task for all calls
looks at it. A timer for each call, moved by each chunk, would cost more than the chunk.
"""

import asyncio
import math
import time
from collections.abc import Callable

import structlog

from gateway.errors import EngineTimeout, GatewayError, InternalError
from gateway.keys import Key
from gateway.usage import Record

LOOK_SECONDS = 0.25
_log = structlog.get_logger("gateway.relay")


class Call:
    """One caller's request from the moment its key is known until its answer's last byte.

    `due`: when the engine must have spoken, in seconds of `time.monotonic()`; `beat_due`: when the caller
    must have heard something, be it a heartbeat, which `beat` then sends. `settle` books what it has used,
    as far as its record tells; `refused`: the engine would not do it; `answer_bytes`: of a plain answer.
    """

    __slots__ = (
        "answer_bytes", "beat", "beat_due", "due", "finished", "key", "reason", "record", "refused",
        "settle", "task",
    )  # fmt: skip

    def __init__(self, key: Key, record: Record, task: asyncio.Task[None]) -> None:
        self.key = key
        self.record = record
        self.task = task
        self.reason: GatewayError | None = None
        self.finished = self.refused = False
        self.answer_bytes = 0
        self.settle: Callable[[], None] = _silent
        self.due = self.beat_due = math.inf
        self.beat: Callable[[], None] = _silent

    @property
    def booked(self) -> bool:
        """Whether an account of it is kept: its limits have let it in."""
        return self.settle is not _silent

    def cut(self, reason: GatewayError) -> None:
        """End the call wherever it stands; the first reason counts, a finished call stays finished."""
        if self.reason is None and not self.finished:
            self.reason = reason
            self.task.cancel()

    def take_reason(self) -> GatewayError | None:
        """Why this task was cancelled, or None if the cancellation came from somebody else."""
        if self.reason is not None:
            self.task.uncancel()
        return self.reason

    def expect(self, seconds: float) -> None:
        """The engine must say something within so many seconds from now."""
        self.due = time.monotonic() + seconds

    def look(self, now: float) -> None:
        """Act on what is due."""
        if now >= self.due:
            self.cut(
                EngineTimeout(
                    "The engine was silent for longer than this gateway waits. Try a shorter request."
                )
            )
        elif now >= self.beat_due:
            self.beat()


class Calls:
    """The open calls, and whether new ones are still taken."""

    def __init__(self) -> None:
        self._open: set[Call] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._open)

    def open(self, key: Key, record: Record) -> Call:
        """A call of the running task, listed until `close`."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is opened by the task that serves it")
        call = Call(key, record, task)
        self._open.add(call)
        self._idle.clear()
        return call

    def close(self, call: Call) -> None:
        """The call is over, however it ended."""
        call.finished = True
        # Both hold the call: they would stay until the garbage collector comes.
        call.settle = call.beat = _silent
        self._open.discard(call)
        if not self._open:
            self._idle.set()

    def cut(self, reason: Callable[[], GatewayError], key_id: str | None = None) -> None:
        """Cut the calls of one key, or all of them."""
        for call in list(self._open):
            if key_id is None or call.key.id == key_id:
                call.cut(reason())

    async def watch(self) -> None:
        """Look after the time-outs and heartbeats of all calls, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for call in list(self._open):
                self._look_after(call, now)

    def _look_after(self, call: Call, now: float) -> None:
        try:
            call.look(now)
        except Exception as error:  # noqa: BLE001  a fault in one call must not end the watch over all others
            _log.exception("call_failed", request_id=call.record.request_id, error=repr(error))
            call.cut(InternalError("The gateway failed; its log says more."))

    async def idle(self, timeout_seconds: float) -> bool:
        """Wait until no call is open; False if some still are when the time is over."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_seconds)
        except TimeoutError:
            return False
        return True


def _silent() -> None:
    """A call that no heartbeat is wanted for, and that nobody keeps an account of."""
