"""Ledgers for tests: what is noted in them, what they count, log and have written."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from gateway.metrics import Metrics
from gateway.settings.sections import Usage as Retention
from gateway.store import Only, Period, Sums, UsageStore
from gateway.usage import Ledger, Record, Usage
from tests.store.usage_rows import database

KEY = "aaaaaaaaaaaa"
BEGIN = Period(datetime(2000, 1, 1, tzinfo=UTC))


def unopened(metrics: Metrics) -> Ledger:
    """One that notes and never writes: its database is never opened, and nothing of it touches the disk."""
    return Ledger(UsageStore(Path("no-such-directory")), metrics, Retention())


def note(ledger: Ledger, status: int = 200, ended_at: float | None = None, **facts: Any) -> Record:
    """A request that ended just now."""
    record = Record()
    told = {"key_id": KEY, "model": "m", "route": "/v1/completions", "usage": Usage(10, 4, 5, 2), **facts}
    for name, value in told.items():
        setattr(record, name, value)
    at = time.time() if ended_at is None else ended_at
    ledger.note(record, status=status, ended_at=at, caller_request_id="theirs")
    return record


def refuse(ledger: Ledger, times: int, **facts: Any) -> None:
    """Refusals by a limit, which have no tokens."""
    for _ in range(times):
        note(ledger, **{"status": 429, "usage": None, "reason": "rate_limit_exceeded", **facts})


def value(metrics: Metrics, name: str) -> float | None:
    """A metric as Prometheus would read it."""
    return metrics.registry.get_sample_value(f"gateway_usage_{name}")


@contextmanager
def log_of_usage() -> Iterator[list[Any]]:
    """The lines about usage that are logged within."""
    lines: list[Any] = []
    with capture_logs() as logged:
        yield lines
        tidying = "usage_not_tidied"  # it begins when it begins
        lines += [line for line in logged if line["event"].startswith("usage_") and line["event"] != tidying]


def moved_out_of_log(path: Path) -> bool:
    """Whether all is in the file itself: what is in its log alone would be lost with the file."""
    [(_, written, moved)] = database(path, "PRAGMA wal_checkpoint(PASSIVE)")
    return bool(written == moved)


async def total(store: UsageStore) -> Sums:
    """Of all that was ever written."""
    [(_, sums)] = await store.summary("key", BEGIN, Only(key=KEY)) or [(KEY, Sums())]
    return sums
