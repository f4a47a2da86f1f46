"""The usage database as the rooms above use it: written in batches, summed by whatever is asked."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from sqlalchemy import Column, delete, func, select

from gateway.store import usage_energy, usage_rows, usage_sums
from gateway.store import usage_schema as schema
from gateway.store.database import Database, Owner
from gateway.store.migrate import Opening
from gateway.store.usage_energy import Energy
from gateway.store.usage_rows import HOUR_SECONDS, NS, UsageRow
from gateway.store.usage_sums import Only, Period, Sums

Grouping = Literal["key", "model", "route", "day", "hour"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
EVERYTHING = Only()
STEP_ROWS = 1000  # deleted in one transaction
LONGEST_DAYS = 36_500  # a setting may be larger than what a date can be moved by


class UsageStore(Owner):
    """The usage database under one data directory, `usage.db`.

    `async with` opens it as `opening` says. All methods raise UsageStoreUnavailable or StorageFull, which
    name the file and the mend. `zone` is where days and hours begin; it may be assigned anew, and what was
    summed up before in a zone of whole hours stays so.
    """

    def __init__(self, data_dir: Path, opening: Opening = "migrate", *, zone: ZoneInfo | None = None) -> None:
        super().__init__(Database(data_dir, schema.USAGE, opening))
        self.zone = ZoneInfo("UTC") if zone is None else zone

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """Writes all of the rows with their hours, or nothing; those that are there already are left out."""
        if rows:
            async with self._database.writing() as (connection, _):
                await usage_rows.write(connection, rows, usage_rows.step_seconds(self.zone))

    async def spent(self, since: datetime) -> dict[str, int]:
        """Prompt and completion tokens by key id, of the calls that ended at `since` or later."""
        async with self._database.reading() as (connection, _):
            found = await usage_sums.sums(connection, "key", Period(since), Only())
        return {key: sums.prompt_tokens + sums.completion_tokens for key, sums in found.items()}

    async def summary(self, by: Grouping, period: Period, only: Only = EVERYTHING) -> list[tuple[str, Sums]]:
        """What was used in a period, by key, model or route as they are called, or by day or hour.

        Days are as "2026-11-30", hours as "2026-11-30T14:00:00+01:00", both in `zone`. In order of time,
        otherwise who used most first. Groups without a request are left out.
        """
        async with self._database.reading() as (connection, _):
            if by != "day" and by != "hour":
                return _most_first(await usage_sums.sums(connection, by, period, only))
            parts = await usage_sums.sums(connection, "begins_seconds", period, only)
        # In a thread: the hours of a year would hold up live streams.
        return await asyncio.to_thread(_folded, parts, _NAMES[by], self.zone)

    async def add_energy(self, hour: datetime, joules: float) -> None:
        """Adds to what the box's GPUs consumed in the hour (UTC) that begins then."""
        async with self._database.writing() as (connection, _):
            await usage_energy.add(connection, hour, joules)

    async def energy(self, period: Period) -> Energy | None:
        """What they consumed in the hours that a period touches, and the tokens of these; None: no figure."""
        async with self._database.reading() as (connection, _):
            return await usage_energy.total(connection, period)

    async def tidy(self, now: datetime, rollup_days: int, retention_days: int) -> bool:
        """Deletes rows older than `rollup_days` and sums older than `retention_days`: one small step.

        Whether there may be more: who writes gets a turn between two steps.
        """
        rows_end = _hour_before(now, min(rollup_days, retention_days))
        hours_end = _hour_before(now, retention_days)
        ends = (
            (schema.rows.c.ended_ns, rows_end * NS),
            (schema.hours.c.begins_seconds, hours_end),
            (schema.energy.c.begins_seconds, hours_end),
        )
        for column, end in ends:
            if await self._delete_oldest(column, end):
                return True
        return False

    async def _delete_oldest(self, column: Column[int], end: int) -> bool:
        """Deletes the oldest of a table's rows before `end`; whether there were any."""
        newest = select(column).order_by(column).offset(STEP_ROWS - 1).limit(1).scalar_subquery()
        step = delete(column.table).where(column < end, column <= func.coalesce(newest, end))
        async with self._database.writing() as (connection, _):
            return (await connection.execute(step)).rowcount > 0


def _most_first(found: dict[str, Sums]) -> list[tuple[str, Sums]]:
    def tokens(item: tuple[str, Sums]) -> tuple[int, str]:
        return -item[1].prompt_tokens - item[1].completion_tokens, item[0]

    return sorted(found.items(), key=tokens)


def _folded(
    parts: dict[int, Sums], name_of: Callable[[int, ZoneInfo], str], zone: ZoneInfo
) -> list[tuple[str, Sums]]:
    """One entry for the parts of one name, in order of time."""
    whole: dict[str, Sums] = {}
    for begins, sums in sorted(parts.items()):
        name = name_of(begins, zone)
        known = whole.get(name)
        whole[name] = sums if known is None else known.plus(sums)
    return list(whole.items())


def _day(begins_seconds: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(begins_seconds, zone).date().isoformat()


def _hour_text(begins_seconds: int, zone: ZoneInfo) -> str:
    """With the offset of that moment: where clocks change by half an hour, its hour begins with another."""
    moment = datetime.fromtimestamp(begins_seconds, zone)
    offset = moment.strftime("%z")
    return f"{moment:%Y-%m-%dT%H}:00:00{offset[:3]}:{offset[3:]}"


_NAMES = {"day": _day, "hour": _hour_text}


def _hour_before(now: datetime, days: int) -> int:
    day = now - timedelta(days=min(days, LONGEST_DAYS))
    return int(day.timestamp()) // HOUR_SECONDS * HOUR_SECONDS
