"""The book of all requests: noted on the way without waiting, written behind the request path in batches.

While the database cannot be written, rows wait in memory in their order, and of too many the oldest go:
that calls go on is worth more than their rows. It is logged once, and counted by
`gateway_usage_rows_lost_total`. Whoever kills the process loses what `FLUSH_SECONDS` have brought.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle
from types import TracebackType
from typing import Self

import structlog

from gateway.errors import GatewayError
from gateway.metrics import Metrics
from gateway.repeating import Repeating
from gateway.settings.sections import Usage as Retention
from gateway.store import UsageRow, UsageStore
from gateway.usage.record import Record
from gateway.usage.refusals import Refusals
from gateway.usage.tokens import Usage

FLUSH_SECONDS = 0.5
TIDY_SECONDS = 3600.0
TIDY_STEP_SECONDS = 0.02
STALL_SECONDS = 6.0  # longer than SQLite waits for a lock
STOP_SECONDS = 8.0  # a disk that hangs must not hold up a stop
BATCH_ROWS = 1000  # in one transaction: what the event loop does for it takes a few milliseconds
MOST_ROWS = 100_000

_NOTHING = Usage()
_log = structlog.get_logger("gateway.usage")


class Ledger:
    """Notes requests and writes them into a store; deletes there what is older than `retention` says.

    `async with` starts the writer and the tidying; leaving writes all that is left, as far as that goes in
    `stop_seconds`. Without it, `flush` writes. Up to `most_rows` wait in memory.
    """

    def __init__(
        self,
        store: UsageStore,
        metrics: Metrics,
        retention: Retention,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        stop_seconds: float = STOP_SECONDS,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._retention = retention
        self._now = now
        self._stop_seconds = stop_seconds
        self._most_rows = most_rows
        self._rows: deque[UsageRow] = deque()
        self._being_written: list[UsageRow] = []
        self._refusals = Refusals()
        self._serial = cycle(range(1000))
        self._writing = asyncio.Lock()
        self._lost = 0
        self._down_cause: str | None = None
        self._work = Repeating(_log, "usage_task_failed")
        self._tasks: list[asyncio.Task[None]] = []
        metrics.usage_store_up.set(1)
        metrics.usage_rows_pending.set_function(lambda: self.pending)

    @property
    def pending(self) -> int:
        """How many rows are not written yet."""
        return len(self._rows) + len(self._being_written)

    def configure(self, retention: Retention) -> None:
        """From the next tidying on, this is what is kept."""
        self._retention = retention

    async def __aenter__(self) -> Self:
        self._tasks = [
            self._work.start(self._flush_or_mark_down, FLUSH_SECONDS),
            self._work.start(self.tidy, TIDY_SECONDS),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._work.stopping.set()
        ending = asyncio.create_task(self._end())
        _, stuck = await asyncio.wait({ending}, timeout=self._stop_seconds)
        for task in (*stuck, *self._tasks):
            task.cancel()
        left = (*self._being_written, *self._rows, *self._refusals.take())
        if left:
            lost = sum(row.requests for row in left)
            self._metrics.usage_rows_lost.inc(lost)
            _log.error("usage_rows_lost", rows=lost, cause=self._down_cause)
        if not stuck:
            await ending  # raises a fault of the gateway's own, if there was one

    def note(self, record: Record, *, status: int, ended_at: float, caller_request_id: str | None) -> None:
        """Note a request that ended at `ended_at` (seconds since 1970 in UTC); never waits.

        One without a known key makes no row.
        """
        if record.key_id is None:
            return
        row = _row(record, record.key_id, status, self._ended_ns(ended_at), caller_request_id)
        if self._refusals.folds(row):
            return
        self._rows.append(row)
        if len(self._rows) > self._most_rows:
            self._drop_oldest()

    async def flush(self) -> None:
        """Write all that was noted. Raises what the store raises; what is not written then is kept."""
        async with self._writing:
            self._rows.extend(self._refusals.take())
            while self._rows:
                await self._write_batch()
            self._refusals.begin()

    async def tidy(self) -> None:
        """Delete what is older than it may be; what cannot be deleted now is at the next time."""
        try:
            while not self._work.stopping.is_set() and await self._store.tidy(
                self._now(), self._retention.rollup_days, self._retention.retention_days
            ):
                await self._work.pause(TIDY_STEP_SECONDS)
        except GatewayError as error:
            _log.warning("usage_not_tidied", cause=error.cause or error.message)

    async def _write_batch(self) -> None:
        batch = [self._rows.popleft() for _ in range(min(BATCH_ROWS, len(self._rows)))]
        self._being_written = batch
        watchdog = asyncio.get_running_loop().call_later(
            STALL_SECONDS, self._mark_down, f"no answer within {STALL_SECONDS:g} s"
        )
        try:
            await self._store.write(batch)
        except GatewayError as error:
            self._mark_down(error.cause or error.message)
            raise
        except Exception:
            self._mark_down("a fault of the gateway's own")
            raise
        else:
            batch.clear()
            self._mark_up()
        finally:
            watchdog.cancel()
            # Should they have been written all the same, the store knows them when they come again.
            self._rows.extendleft(reversed(batch))
            self._being_written = []
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while self._rows and self.pending > self._most_rows:
            if not self._lost:
                _log.error("usage_rows_dropped", kept=self._most_rows, cause=self._down_cause)
            lost = self._rows.popleft().requests
            self._lost += lost
            self._metrics.usage_rows_lost.inc(lost)

    def _mark_down(self, cause: str) -> None:
        if self._down_cause is None:
            _log.error("usage_not_written", cause=cause)
        self._down_cause = cause
        self._metrics.usage_store_up.set(0)

    def _mark_up(self) -> None:
        if self._down_cause is not None:
            _log.info("usage_written_again", rows_lost=self._lost)
        self._down_cause, self._lost = None, 0
        self._metrics.usage_store_up.set(1)

    def _ended_ns(self, ended_at: float) -> int:
        """A name for a row: its microsecond, and a nanosecond that tells it from others in it."""
        return int(ended_at * 1_000_000) * 1000 + next(self._serial)

    async def _end(self) -> None:
        await asyncio.wait(self._tasks)
        await self._flush_or_mark_down()

    async def _flush_or_mark_down(self) -> None:
        with contextlib.suppress(GatewayError):  # it is marked and logged, and the next time comes
            await self.flush()


def _row(record: Record, key_id: str, status: int, ended_ns: int, caller_request_id: str | None) -> UsageRow:
    usage = record.usage or _NOTHING
    return UsageRow(
        ended_ns,
        record.request_id,
        caller_request_id,
        key_id,
        record.model,
        record.route,
        status,
        record.reason,
        1,
        usage.prompt,
        usage.cached,
        usage.completion,
        usage.reasoning,
        record.estimated,
        record.queued_seconds,
        record.first_token - record.started if record.first_token else None,
        time.monotonic() - record.started,
    )
