"""Usage rows for the tests, and what plain Python makes of them."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from gateway.store import Grouping, Only, Period, Sums, UsageRow

NS = 1_000_000_000
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ns(moment: datetime) -> int:
    """Nanoseconds since 1970."""
    return int(moment.timestamp() * 1_000_000) * 1000


def row(ended: datetime | int, **values: Any) -> UsageRow:
    """A finished request of ten prompt and five completion tokens, unless it is said otherwise."""
    ended_ns = ended if isinstance(ended, int) else ns(ended)
    plain = {"caller_request_id": None, "key": "aaaaaaaaaaaa", "model": "m", "route": "/v1/completions"}
    told = {"status": 200, "reason": "ok", "prompt_tokens": 10, "completion_tokens": 5}
    return UsageRow(**{"ended_ns": ended_ns, "request_id": f"req_{ended_ns}", **plain, **told, **values})


def sums_of(rows: Iterable[UsageRow]) -> Sums:
    """What they come to."""
    total = Sums()
    for one in rows:
        tokens = one.prompt_tokens, one.cached_tokens, one.completion_tokens, one.reasoning_tokens
        errors = 0 if one.reason in ("ok", "client_closed") else one.requests
        estimated = one.prompt_tokens + one.completion_tokens if one.estimated else 0
        total = total.plus(Sums(one.requests, errors, *tokens, estimated))
    return total


def summary_of(
    rows: Iterable[UsageRow], by: Grouping, period: Period, only: Only, zone: ZoneInfo
) -> dict[str, Sums]:
    """What the store must answer."""
    end_ns = None if period.until is None else ns(period.until)
    groups: dict[str, list[UsageRow]] = {}
    for one in rows:
        if one.ended_ns < ns(period.since) or (end_ns is not None and one.ended_ns >= end_ns):
            continue
        if only.key in (None, one.key) and only.model in (None, one.model):
            groups.setdefault(_group(one, by, zone), []).append(one)
    return {name: sums_of(members) for name, members in groups.items()}


def _group(one: UsageRow, by: Grouping, zone: ZoneInfo) -> str:
    ended = datetime.fromtimestamp(one.ended_ns // NS, zone)
    if by == "day":
        return ended.date().isoformat()
    if by == "hour":
        return ended.replace(minute=0, second=0).isoformat()
    name: str = getattr(one, by)
    return name


def database(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """What SQLite itself answers."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()
