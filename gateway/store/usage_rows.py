"""Writing usage: rows as they come, and the sums of their hours in the same transaction."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import bindparam, insert, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store import usage_schema as schema

HOUR_SECONDS = 3600
NS = 1_000_000_000
NO_ERRORS = ("ok", "client_closed")  # reasons; a caller who left is no error of the service
LOOKED_UP = 500  # ids in one statement
AT_ONCE = 50  # rows in one statement


class UsageRow(NamedTuple):
    """One request, in the order of the table's columns.

    `ended_ns` is the time in UTC since 1970 and names the row. `status` is HTTP's, 499 for a caller who
    left before there was one; `reason` is "ok" or an error's code, also of an error after the status.
    `ttft_seconds` is None where no token came. `cached_tokens` are part of `prompt_tokens`,
    `reasoning_tokens` of `completion_tokens`.
    """

    ended_ns: int
    request_id: str
    caller_request_id: str | None
    key: str
    model: str
    route: str
    status: int
    reason: str
    requests: int = 1
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    queue_seconds: float = 0.0
    ttft_seconds: float | None = None
    duration_seconds: float = 0.0


def step_seconds(zone: ZoneInfo) -> int:
    """The longest part of an hour that begins with every hour and day of this zone."""
    # Two days of one year: a zone may change its offset by less than an hour (Lord Howe).
    offsets = (datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7))
    return math.gcd(HOUR_SECONDS, *(int(offset.total_seconds()) for offset in offsets if offset is not None))


async def write(connection: AsyncConnection, rows: Sequence[UsageRow], step: int) -> None:
    """Writes rows that are not there yet, and adds them to their hours of `step` seconds."""
    new = rows
    if len({row.ended_ns for row in rows}) < len(rows) or await _overlaps(connection, rows):
        new = await _placed(connection, rows)
    if new:
        await _insert(connection, new)
        await connection.exec_driver_sql(_ADD_HOUR, _by_hour(new, step))


async def _insert(connection: AsyncConnection, rows: Sequence[UsageRow]) -> None:
    # Not by SQLAlchemy's own executemany: its look at each value takes as long as all the rest. And many in
    # one statement: with each the interpreter's lock changes hands, for which the event loop waits.
    whole = len(rows) - len(rows) % AT_ONCE
    groups = [tuple(chain(*rows[begin : begin + AT_ONCE])) for begin in range(0, whole, AT_ONCE)]
    if groups:
        await connection.exec_driver_sql(_INSERT_GROUP, groups)
    if whole < len(rows):
        await connection.exec_driver_sql(_INSERT_ROW, list(rows[whole:]))


def _by_hour(rows: Sequence[UsageRow], step: int) -> list[tuple[int | str, ...]]:
    hours: dict[tuple[int, str, str, str], list[int]] = {}
    for row in rows:
        group = (row.ended_ns // (step * NS) * step, row.key, row.model, row.route)
        sums = hours.get(group)
        if sums is None:
            sums = hours[group] = [0, 0, 0, 0, 0, 0, 0]
        sums[0] += row.requests
        if row.reason not in NO_ERRORS:
            sums[1] += row.requests
        sums[2] += row.prompt_tokens
        sums[3] += row.cached_tokens
        sums[4] += row.completion_tokens
        sums[5] += row.reasoning_tokens
        if row.estimated:
            sums[6] += row.prompt_tokens + row.completion_tokens
    return [(*group, *sums) for group, sums in hours.items()]


async def _overlaps(connection: AsyncConnection, rows: Sequence[UsageRow]) -> bool:
    """Whether a row of their time is there: rarely, since time goes on."""
    ids = [row.ended_ns for row in rows]
    return (await connection.execute(_OVERLAP, {"first": min(ids), "last": max(ids)})).first() is not None


async def _placed(connection: AsyncConnection, rows: Sequence[UsageRow]) -> list[UsageRow]:
    """The rows that are not there yet, each under an id of its own.

    One that was written before and is written again, since its writer did not hear of the end, is left
    out. One whose nanosecond is another's takes the next that is free.
    """
    taken = await _taken(connection, [row.ended_ns for row in rows])
    new = []
    for row in rows:
        ended_ns = row.ended_ns
        while taken.get(ended_ns, row.request_id) != row.request_id:
            ended_ns += 1
            if ended_ns not in taken:
                taken |= await _taken(connection, [ended_ns])
        if ended_ns not in taken:
            taken[ended_ns] = row.request_id
            new.append(row._replace(ended_ns=ended_ns))
    return new


async def _taken(connection: AsyncConnection, ids: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for begin in range(0, len(ids), LOOKED_UP):
        piece = await connection.execute(_LOOK_UP, {"ids": ids[begin : begin + LOOKED_UP]})
        found |= {row.ended_ns: row.request_id for row in piece}
    return found


def _add_hour() -> str:
    statement = sqlite.insert(schema.hours)
    names = [column.name for column in schema.hours.columns if not column.primary_key]
    sums = {name: schema.hours.c[name] + statement.excluded[name] for name in names}
    added = statement.on_conflict_do_update(index_elements=schema.hours.primary_key.columns, set_=sums)
    return str(added.compile(dialect=sqlite.dialect()))


_INSERT_ROW = str(insert(schema.rows).compile(dialect=sqlite.dialect()))
_INTO, _ROW = _INSERT_ROW.split(" VALUES ")
_INSERT_GROUP = f"{_INTO} VALUES {', '.join([_ROW] * AT_ONCE)}"
_ADD_HOUR = _add_hour()
_OVERLAP = (
    select(schema.rows.c.ended_ns)
    .where(schema.rows.c.ended_ns.between(bindparam("first"), bindparam("last")))
    .limit(1)
)
_LOOK_UP = select(schema.rows.c.ended_ns, schema.rows.c.request_id).where(
    schema.rows.c.ended_ns.in_(bindparam("ids", expanding=True))
)
