"""Rows of usage and their sums by hour: written once, together, and summed up to the second."""

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from gateway.errors import StorageFull, UsageStoreUnavailable
from gateway.store import GROUPINGS, Only, Period, Sums, UsageRow, UsageStore, usage_schema, usage_sums
from tests.store.usage_rows import NOON, NS, database, ns, row, summary_of, sums_of

ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"]
BATCHES_FOR_EVER = """
import asyncio, pathlib, sys
from gateway.store import UsageStore
from tests.store.usage_rows import NOON, ns, row
async def main():
    async with UsageStore(pathlib.Path(sys.argv[1])) as store:
        for batch in range(1_000_000):
            begin = ns(NOON) + batch * 10**12
            await store.write([row(begin + number, key=f"key{number % 7:09}") for number in range(50)])
            print(batch, flush=True)
asyncio.run(main())
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[UsageStore]:
    """An open database in a directory of its own."""
    async with UsageStore(tmp_path) as opened:
        yield opened


def test_a_row_has_the_columns_of_its_table() -> None:
    """It is handed to SQLite as it is, so the order counts too."""
    assert UsageRow._fields == tuple(usage_schema.rows.columns.keys())
    assert Sums._fields == tuple(usage_schema.hours.columns.keys())[4:]


async def test_what_was_written_is_summed_up(store: UsageStore) -> None:
    """Estimates are part of the tokens; a caller who left is no error, a stream that broke is one."""
    rows = [
        row(NOON, cached_tokens=4, reasoning_tokens=2),
        row(NOON + timedelta(hours=1), status=499, reason="client_closed", estimated=True),
        row(
            NOON + timedelta(hours=2),
            status=429,
            reason="x",
            requests=40,
            prompt_tokens=0,
            completion_tokens=0,
        ),
        row(
            NOON + timedelta(hours=3), key="bbbbbbbbbbbb", model="n", prompt_tokens=100, reason="engine_error"
        ),
    ]
    await store.write(rows)
    everything = Period(NOON)
    assert await store.summary("key", everything) == [
        ("bbbbbbbbbbbb", Sums(1, 1, 100, 0, 5, 0, 0)),
        ("aaaaaaaaaaaa", Sums(42, 40, 20, 4, 10, 2, 15)),
    ]
    assert await store.summary("model", everything, Only(key="aaaaaaaaaaaa")) == [("m", sums_of(rows[:3]))]
    assert await store.summary("hour", everything, Only(model="n")) == [
        ("2026-11-30T15:00:00+00:00", sums_of(rows[3:]))
    ]
    assert await store.spent(NOON + timedelta(hours=1)) == {"aaaaaaaaaaaa": 15, "bbbbbbbbbbbb": 105}
    assert await store.summary("route", Period(NOON - timedelta(days=9), NOON)) == []


@pytest.mark.parametrize("name", ZONES)
async def test_sums_are_exact_for_any_period_and_zone(tmp_path: Path, name: str) -> None:
    """As plain Python counts them: over a change of the clocks, from any second to any other."""
    chance, zone = random.Random(name), ZoneInfo(name)  # noqa: S311  no secret
    begin = datetime(
        2026, 10, 2, tzinfo=UTC
    )  # the clocks change on Lord Howe on the 4th, in Berlin on the 25th
    seconds = 25 * 86_400
    rows = [
        row(
            ns(begin) + chance.randrange(seconds * NS),
            key=chance.choice(["aaaaaaaaaaaa", "bbbbbbbbbbbb"]),
            model=chance.choice("mn"),
            reason=chance.choice(["ok", "client_closed", "engine_error"]),
            estimated=chance.random() < 0.2,
            prompt_tokens=chance.randrange(1000),
        )
        for _ in range(2000)
    ]
    rows.sort()
    async with UsageStore(tmp_path, zone=zone) as store:
        for first in range(0, len(rows), 500):
            await store.write(rows[first : first + 500])
        for _ in range(40):
            since, until = sorted(begin + timedelta(seconds=chance.randrange(seconds)) for _ in range(2))
            short = since + timedelta(minutes=chance.randrange(1, 90))
            period = Period(since, chance.choice([None, until, short]))
            by, only = chance.choice(GROUPINGS), Only(key=chance.choice([None, "aaaaaaaaaaaa"]))
            expected = summary_of(rows, by, period, only, zone)
            assert dict(await store.summary(by, period, only)) == expected, (by, period)


async def test_hours_have_the_offset_of_their_moment(store: UsageStore) -> None:
    """Where clocks go back by half an hour, the second half of that hour is not put under the first's."""
    store.zone = ZoneInfo("Australia/Lord_Howe")
    change = datetime(2026, 4, 4, 15, tzinfo=UTC)  # 02:00+11:00 there, which becomes 01:30+10:30
    await store.write([row(change + timedelta(minutes=minutes)) for minutes in (-20, 10, 40)])
    names = [name for name, _ in await store.summary("hour", Period(change - timedelta(days=1)), Only())]
    assert names == ["2026-04-05T01:00:00+11:00", "2026-04-05T01:00:00+10:30", "2026-04-05T02:00:00+10:30"]


async def test_another_zone_leaves_what_was_summed_up_exact(store: UsageStore) -> None:
    """What was written before in hours and after it in quarters of them is counted once."""
    rows = [row(NOON + timedelta(minutes=7 * number)) for number in range(40)]
    for first, name in ((0, "UTC"), (10, "Asia/Kathmandu"), (25, "Asia/Kolkata")):
        store.zone = ZoneInfo(name)
        await store.write(rows[first:])
    for minutes in range(0, 280, 5):
        since = NOON + timedelta(minutes=minutes)
        expected = sum(15 for one in rows if one.ended_ns >= ns(since))
        assert (await store.spent(since)).get("aaaaaaaaaaaa", 0) == expected, since


async def test_after_the_rows_are_gone_hours_are_summed_up(store: UsageStore) -> None:
    """An hour that is cut by the period counts if it begins within; whole days stay exact."""
    rows = [row(NOON + timedelta(minutes=10 * number)) for number in range(144)]
    await store.write(rows)
    while await store.tidy(NOON + timedelta(days=31), 30, 400):
        pass
    assert database(store.path, "SELECT count(*) FROM usage_rows") == [(0,)]
    assert await store.summary("key", Period(NOON)) == [("aaaaaaaaaaaa", sums_of(rows))]
    late, early = Period(NOON + timedelta(minutes=30)), Period(NOON - timedelta(minutes=30))
    assert await store.summary("key", late) == [("aaaaaaaaaaaa", sums_of(rows[6:]))]
    assert await store.spent(early.since) == {"aaaaaaaaaaaa": 144 * 15}


async def test_old_rows_go_before_old_hours_a_step_at_a_time(store: UsageStore) -> None:
    """No step is long, a day's rows are not kept for the hour they share, and nothing new goes."""
    await store.write([row(ns(NOON) + number, prompt_tokens=1) for number in range(2500)])
    await store.write([row(NOON + timedelta(days=30)), row(NOON + timedelta(days=61))])
    now = NOON + timedelta(days=61, minutes=59)
    left = []
    while await store.tidy(now, 30, 400):
        left.append(database(store.path, "SELECT count(*) FROM usage_rows")[0][0])
    assert left == [1502, 502, 1]
    assert database(store.path, "SELECT sum(requests) FROM usage_hours") == [(2502,)]
    while await store.tidy(now, 30, 40):
        pass
    assert database(store.path, "SELECT sum(requests) FROM usage_hours") == [(2,)]
    while await store.tidy(now + timedelta(days=2), 10**9, 1):  # rows do not outlive their hours
        pass
    assert await store.summary("day", Period(NOON)) == []
    assert database(store.path, "SELECT count(*) FROM usage_rows") == [(0,)]


async def test_the_same_rows_are_never_counted_twice(store: UsageStore) -> None:
    """Who did not hear that they were written, writes them again; two of one nanosecond are two."""
    first = [row(ns(NOON) + number) for number in range(3)]
    for _ in range(2):
        await store.write(first)
    twin = row(NOON, request_id="another", key="bbbbbbbbbbbb")
    again = [*first, twin, row(NOON + timedelta(seconds=1))]
    for _ in range(2):
        await store.write(again)
    assert await store.summary("key", Period(NOON)) == [
        ("aaaaaaaaaaaa", sums_of([*first, again[-1]])),
        ("bbbbbbbbbbbb", sums_of([twin])),
    ]
    assert database(store.path, "SELECT count(*) FROM usage_rows WHERE request_id = 'another'") == [(1,)]


async def test_what_is_asked_never_scans_the_rows(store: UsageStore) -> None:
    """Each statement finds its period by the order of the table: so a year stays as quick as a week."""
    await store.write([row(NOON), row(NOON + timedelta(days=40))])
    period = Period(NOON + timedelta(minutes=1), NOON + timedelta(days=39, minutes=1))
    plans = []
    async with store._database.reading() as (connection, _):
        statements = await usage_sums._statements(connection, "key", period, Only(model="m"))
        for statement in statements:
            compiled = statement.compile(
                connection.engine.sync_engine, compile_kwargs={"literal_binds": True}
            )
            plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))
            plans += [line.detail for line in plan if "TEMP B-TREE" not in line.detail]
    assert len(plans) == len(statements) == 4  # two ends and two pieces of whole hours
    assert all(plan.startswith("SEARCH usage_") and "PRIMARY KEY" in plan for plan in plans), plans


def test_a_killed_process_leaves_whole_batches_with_their_hours(tmp_path: Path) -> None:
    """What it said was written is there; of what it was writing, all or nothing."""
    run = [sys.executable, "-c", BATCHES_FOR_EVER, str(tmp_path)]
    for _ in range(2):  # the second finds what the first has left
        with subprocess.Popen(run, stdout=subprocess.PIPE) as writing:
            assert writing.stdout is not None
            said = [int(writing.stdout.readline()) for _ in range(30)]
            writing.send_signal(signal.SIGKILL)
        path = tmp_path / "usage.db"
        [(rows,)] = database(path, "SELECT count(*) FROM usage_rows")
        assert rows % 50 == 0
        assert rows >= 50 * len(said)
        assert database(path, "SELECT sum(requests), sum(prompt_tokens) FROM usage_hours") == [
            (rows, 10 * rows)
        ]
        assert database(path, "PRAGMA integrity_check") == [("ok",)]


async def test_its_own_checkpoints_are_no_foreign_change(store: UsageStore) -> None:
    """A busy writer moves its log into the file again and again, and keeps its connections."""
    before = store._database.generation
    batch = 0
    while store.path.stat().st_size < 1000 * 4096:  # it grows by nothing else
        await store.write([row(ns(NOON) + batch * NS + number) for number in range(2000)])
        batch += 1
    assert store._database.generation == before


async def test_another_file_in_its_place_is_written_from_then_on(store: UsageStore, tmp_path: Path) -> None:
    """As after a backup was put back."""
    async with UsageStore(tmp_path / "other") as other:
        await other.write([row(NOON)])
    shutil.move(tmp_path / "other" / "usage.db", store.path)
    await store.write([row(NOON + timedelta(seconds=1))])
    assert await store.spent(NOON) == {"aaaaaaaaaaaa": 30}


async def test_a_lost_file_is_noticed_and_not_made_anew(store: UsageStore) -> None:
    """Rows would go into a file that nobody finds again."""
    store.path.unlink()
    with pytest.raises(UsageStoreUnavailable, match="There is no usage database"):
        await store.write([row(NOON)])
    assert not store.path.exists()


async def test_a_full_disk_is_told_and_nothing_of_the_batch_is_there(store: UsageStore) -> None:
    """SQLite's own result code for it becomes 507 with the path."""
    await store.write([row(NOON)])
    async with store._database.reading() as (connection, _):
        await connection.exec_driver_sql("PRAGMA max_page_count = 1")
    rows = [row(ns(NOON) + number, model="m" * 1000) for number in range(1, 500)]
    with pytest.raises(StorageFull, match=r"No room is left on the disk of .*usage\.db"):
        await store.write(rows)
    assert await store.spent(NOON) == {"aaaaaaaaaaaa": 15}
