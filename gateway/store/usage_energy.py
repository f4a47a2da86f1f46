"""What the box's GPUs consumed in each hour, and the tokens of the hours in which that was measured."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store import usage_schema as schema
from gateway.store.usage_rows import HOUR_SECONDS
from gateway.store.usage_sums import Period

_energy, _hours = schema.energy.c, schema.hours.c


class Energy(NamedTuple):
    """Joules of all GPUs of the box, idle or not, and all prompt and completion tokens of the same hours."""

    joules: float
    tokens: int


async def add(connection: AsyncConnection, hour: datetime, joules: float) -> None:
    """Adds to what was consumed in the hour that begins then."""
    statement = insert(schema.energy).values(begins_seconds=_begin(hour), joules=joules)
    added = {"joules": _energy.joules + statement.excluded.joules}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=[_energy.begins_seconds], set_=added)
    )


async def total(connection: AsyncConnection, period: Period) -> Energy | None:
    """Of all hours that a period touches and in which something was measured; None if there are none."""
    await connection.exec_driver_sql("BEGIN")  # joules and tokens of the same hours
    measured = [_energy.begins_seconds >= _begin(period.since)]
    if period.until is not None:
        measured.append(_energy.begins_seconds < int(period.until.timestamp()))
    joules = await connection.scalar(select(func.sum(_energy.joules)).where(*measured))
    if joules is None:
        return None
    tokens = func.total(_hours.prompt_tokens + _hours.completion_tokens)
    hour: ColumnElement[int] = _hours.begins_seconds // HOUR_SECONDS * HOUR_SECONDS
    # The first condition finds the hours by their order, the second chooses among them.
    within = (
        _hours.begins_seconds >= _begin(period.since),
        hour.in_(select(_energy.begins_seconds).where(*measured)),
    )
    return Energy(joules, int(await connection.scalar(select(tokens).where(*within)) or 0))


def _begin(moment: datetime) -> int:
    return int(moment.timestamp()) // HOUR_SECONDS * HOUR_SECONDS
