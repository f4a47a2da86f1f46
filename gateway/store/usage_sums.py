"""Reading usage: sums of a period, by whole hours from the sums that are kept, its ends from the rows.

The ends of a period are no whole hours. While the rows of such an hour are all there, they are summed;
where they were deleted, the part of the hour that begins within the period counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store import usage_schema as schema
from gateway.store.usage_rows import HOUR_SECONDS, NO_ERRORS, NS

By = Literal["key", "model", "route", "begins_seconds"]
SLICE_SECONDS = 31 * 24 * HOUR_SECONDS  # a live stream waits while its result becomes Python values
LAST_NS = 9_000_000_000 * NS  # the year 2255: SQLite has no numbers for what comes later
QUARTER_SECONDS = 900  # every zone's hours begin at one
_rows, _hours = schema.rows.c, schema.hours.c


class Sums(NamedTuple):
    """What some requests have used in all."""

    requests: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_tokens: int = 0

    def plus(self, other: "Sums") -> "Sums":
        """Both together."""
        return Sums(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Period:
    """Calls that ended at `since` or later and before `until` (None: whenever)."""

    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Only:
    """One key's or one model's use alone; None: all."""

    key: str | None = None
    model: str | None = None

    def on(self, columns: Any) -> list[ColumnElement[bool]]:
        """As conditions on a table's columns."""
        wanted = {"key": self.key, "model": self.model}
        return [columns[name] == value for name, value in wanted.items() if value is not None]


async def sums(connection: AsyncConnection, by: By, period: Period, only: Only) -> dict[Any, Sums]:
    """The sums of a period by key, model, route, or by the second since 1970 at which a part began.

    A part is an hour or less (see `usage_rows.step_seconds`); those at the ends are quarters of an hour.
    """
    await connection.exec_driver_sql("BEGIN")  # what is read in one piece and what in another fit together
    found: dict[Any, Sums] = {}
    for statement in await _statements(connection, by, period, only):
        for group, *values in await connection.execute(statement):
            known = found.get(group)
            found[group] = Sums(*values) if known is None else known.plus(Sums(*values))
    return found


async def _statements(connection: AsyncConnection, by: By, period: Period, only: Only) -> list[Select[Any]]:
    begin_ns = _ns(period.since)
    end_ns = None if period.until is None else max(begin_ns, _ns(period.until))
    first = -(-begin_ns // (HOUR_SECONDS * NS)) * HOUR_SECONDS
    last = None if end_ns is None else end_ns // (HOUR_SECONDS * NS) * HOUR_SECONDS
    if end_ns is not None and last is not None and last < first:
        return [await _part(connection, by, (begin_ns, end_ns), only)]
    chosen = []
    if begin_ns < first * NS:
        chosen.append(await _part(connection, by, (begin_ns, first * NS), only))
    chosen += [_of_hours(by, begin, end, only) for begin, end in await _slices(connection, first, last)]
    if end_ns is not None and last is not None and last * NS < end_ns:
        chosen.append(await _part(connection, by, (last * NS, end_ns), only))
    return chosen


async def _part(connection: AsyncConnection, by: By, ends: tuple[int, int], only: Only) -> Select[Any]:
    """The statement on a part of one hour, from the first to before the second nanosecond."""
    begin_ns, end_ns = ends
    hour = begin_ns // (HOUR_SECONDS * NS) * HOUR_SECONDS
    kept = select(func.total(_rows.requests)).where(*_between(_rows.ended_ns, hour, hour + HOUR_SECONDS, NS))
    told = select(func.total(_hours.requests)).where(
        *_between(_hours.begins_seconds, hour, hour + HOUR_SECONDS)
    )
    if await connection.scalar(kept) == await connection.scalar(told):
        return _of_rows(by, begin_ns, end_ns, only)
    return _of_hours(by, -(-begin_ns // NS), -(-end_ns // NS), only)


async def _slices(connection: AsyncConnection, first: int, last: int | None) -> list[tuple[int, int]]:
    """What there is of whole hours between two times, in pieces."""
    oldest = await connection.scalar(select(func.min(_hours.begins_seconds)))
    newest = await connection.scalar(select(func.max(_hours.begins_seconds)))
    if oldest is None or newest is None:
        return []
    begin = max(first, oldest)
    end = newest + 1 if last is None else min(last, newest + 1)
    return [
        (start, min(start + SLICE_SECONDS, end)) for start in range(begin, max(begin, end), SLICE_SECONDS)
    ]


def _of_hours(by: By, begin: int, end: int, only: Only) -> Select[Any]:
    group = _hours[by]
    columns = [func.sum(_hours[name]) for name in Sums._fields]
    within = [*_between(_hours.begins_seconds, begin, end), *only.on(_hours)]
    return select(group, *columns).where(*within).group_by(group)


def _of_rows(by: By, begin_ns: int, end_ns: int, only: Only) -> Select[Any]:
    quarter = _rows.ended_ns // (QUARTER_SECONDS * NS) * QUARTER_SECONDS
    group: ColumnElement[Any] = quarter if by == "begins_seconds" else _rows[by]
    tokens = _rows.prompt_tokens + _rows.completion_tokens
    columns = {
        **{name: func.sum(_rows[name]) for name in Sums._fields if name in _rows},
        "errors": func.sum(case((_rows.reason.in_(NO_ERRORS), 0), else_=_rows.requests)),
        "estimated_tokens": func.sum(case((_rows.estimated, tokens), else_=0)),
    }
    within = [*_between(_rows.ended_ns, begin_ns, end_ns), *only.on(_rows)]
    return select(group, *(columns[name] for name in Sums._fields)).where(*within).group_by(group)


def _between(
    column: ColumnElement[int], begin: int, end: int, unit: int = 1
) -> Iterator[ColumnElement[bool]]:
    yield column >= begin * unit
    yield column < end * unit


def _ns(moment: datetime) -> int:
    found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    return min(max(found, 0), LAST_NS)
