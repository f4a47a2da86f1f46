"""How the usage database bears a year of many requests: fills one and asks it what operators ask.

    .venv/bin/python -m bench.usage_scale FOLDER [--per-day 1000000] [--days 400] [--row-days 30]

Rows are written as the server writes them; hours older than the rows are put there as roll-up leaves
them. FOLDER must not exist; a million rows take about 110 MB in it.
"""

import argparse
import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.store import GROUPINGS, Only, Period, UsageRow, UsageStore
from gateway.usage.ledger import BATCH_ROWS

KEYS = [f"key{number:09}" for number in range(20)]
MODELS = ["qwen3.5-35b-a3b", "qwen3-embedding", "smollm2"]
ROUTES = ["/v1/chat/completions", "/v1/embeddings"]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NS = 1_000_000_000


def rows(first: datetime, count: int, days: int) -> Iterator[UsageRow]:
    """So many requests, evenly over so many days."""
    begin, step = int(first.timestamp()) * NS, days * 86_400 * NS // count
    chance = random.Random(7)  # noqa: S311  for variety
    groups = [chance.choice(list(itertools.product(KEYS, MODELS, ROUTES))) for _ in range(9973)]
    for number, (key, model, route) in zip(range(count), itertools.cycle(groups), strict=False):
        yield UsageRow(
            begin + number * step, f"req_{number:024x}", None, key, model, route, 200, "ok", 1,
            1000, 300, 200, 50, False, 0.0, 0.123456, 2.345678,
        )  # fmt: skip


async def fill_hours(store: UsageStore, first: datetime, hours: int) -> None:
    """Sums of every key, model and route for each hour, as roll-up leaves them."""
    begin = int(first.timestamp())
    statement = "INSERT INTO usage_hours VALUES (?, ?, ?, ?, 347, 3, 347000, 100000, 69000, 17000, 0)"
    for day in range(0, hours, 24):
        values = [
            (begin + hour * 3600, *group)
            for hour in range(day, min(day + 24, hours))
            for group in itertools.product(KEYS, MODELS, ROUTES)
        ]
        async with store._database.writing() as (connection, _):  # noqa: SLF001  nobody else needs it
            await connection.exec_driver_sql(statement, values)


async def timed(name: str, work: Callable[[], Awaitable[object]]) -> None:
    """Runs it and prints how long that took; what stood in memory before may help it, as on a server."""
    begin = time.perf_counter()
    found = await work()
    size = f"{len(found)} rows" if isinstance(found, list | dict) else ""
    print(f"{name:<44} {1000 * (time.perf_counter() - begin):9.1f} ms  {size}", flush=True)  # noqa: T201


async def ask(store: UsageStore, days: int) -> None:
    """What operators ask, and what the server itself asks at its start."""
    for by in GROUPINGS:
        for length in (1, 7, 30, days):
            period = Period(NOW - timedelta(days=length, minutes=17))
            await timed(f"by {by}, {length} days", lambda by=by, period=period: store.summary(by, period))
    year = Period(NOW - timedelta(days=days))
    await timed(f"by day, {days} days, one key", lambda: store.summary("day", year, Only(key=KEYS[0])))
    await timed("spent this day", lambda: store.spent(NOW - timedelta(hours=12)))
    await timed("spent this month", lambda: store.spent(NOW - timedelta(days=29, minutes=1)))


async def tidy(store: UsageStore) -> None:
    """What an hour's tidying deletes, and how long the longest step holds up who writes."""
    worst, steps, begin = 0.0, 0, time.perf_counter()
    more = True
    while more:
        step = time.perf_counter()
        more = await store.tidy(NOW + timedelta(hours=1), 30, 400)
        worst, steps = max(worst, time.perf_counter() - step), steps + 1
    spent = time.perf_counter() - begin
    print(f"tidying an hour: {steps} steps in {spent:.2f} s, the longest {1000 * worst:.1f} ms")  # noqa: T201


def size_bytes(folder: Path) -> int:
    """Of all files in it."""
    return sum(file.stat().st_size for file in folder.iterdir())


async def main(folder: Path, per_day: int, days: int, row_days: int) -> None:
    """Fills the database and prints all figures."""
    async with UsageStore(folder) as store:
        await fill_hours(store, NOW - timedelta(days=days), (days - row_days) * 24)
        count, spent = per_day * row_days, 0.0
        made = rows(NOW - timedelta(days=row_days), count, row_days)
        while batch := list(itertools.islice(made, BATCH_ROWS)):
            begin = time.process_time()
            await store.write(batch)
            spent += time.process_time() - begin
        size = size_bytes(folder)
        print(f"{count:,} rows: {spent / count * 1e6:.1f} µs CPU each, {size / 1e9:.2f} GB in all")  # noqa: T201
        await ask(store, days)
        await tidy(store)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--per-day", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=400)
    parser.add_argument("--row-days", type=int, default=30)
    given = parser.parse_args()
    if given.folder.exists():
        parser.error(f"{given.folder} is there already")
    asyncio.run(main(given.folder, given.per_day, given.days, given.row_days))
