"""The ledger: every request is written once, behind the path, whatever becomes of the database meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import UsageStoreUnavailable
from gateway.metrics import Metrics
from gateway.settings.sections import Usage as Retention
from gateway.store import Sums, UsageRow, UsageStore
from gateway.usage import Ledger
from gateway.usage.tokens import MOST_TOKENS, from_json
from tests.keys.waiting import until
from tests.store import harm
from tests.store.usage_rows import database, row
from tests.usage.ledgers import BEGIN, KEY, log_of_usage, moved_out_of_log, note, refuse, total, value


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[UsageStore]:
    """An open database in a directory of its own."""
    async with UsageStore(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def metrics() -> Metrics:
    """What is counted."""
    return Metrics()


@pytest.fixture
def ledger(store: UsageStore, metrics: Metrics) -> Ledger:
    """One that writes when it is told to."""
    return Ledger(store, metrics, Retention())


async def test_a_row_holds_what_is_known_of_its_request(ledger: Ledger, store: UsageStore) -> None:
    """Times from the request's head on; no first token, no time to it."""
    started = time.monotonic() - 100
    first_token: dict[str, Any] = {
        "started": started,
        "first_token": started + 2,
        "queued_seconds": 0.5,
        "estimated": True,
    }
    streamed = note(ledger, 200, 1_700_000_000.25, **first_token)
    plain = note(ledger, ended_at=1_700_000_001, status=502, reason="engine_error", usage=None)
    await ledger.flush()
    rows = database(store.path, "SELECT * FROM usage_rows")
    told = "theirs", KEY, "m", "/v1/completions"
    assert rows[0][:-1] == (
        1_700_000_000_250_000_000, streamed.request_id, *told, 200, "ok", 1, 10, 4, 5, 2, 1, 0.5, 2.0,
    )  # fmt: skip
    assert rows[0][-1] >= 100
    assert rows[1][:-1] == (
        1_700_000_001_000_000_001, plain.request_id, *told, 502, "engine_error", 1, 0, 0, 0, 0, 0, 0.0, None,
    )  # fmt: skip


async def test_leaving_writes_all_that_is_left(store: UsageStore, metrics: Metrics) -> None:
    """Also more than fits into one transaction, in the order in which it came."""
    async with Ledger(store, metrics, Retention()) as ledger:
        ids = [note(ledger).request_id for _ in range(2500)]
        assert value(metrics, "rows_pending") == 2500
    assert await total(store) == Sums(2500, 0, 25_000, 10_000, 12_500, 5000, 0)
    assert [found for (found,) in database(store.path, "SELECT request_id FROM usage_rows")] == ids
    assert (value(metrics, "rows_pending"), value(metrics, "rows_lost_total")) == (0, 0)


async def test_it_writes_by_itself(store: UsageStore, metrics: Metrics) -> None:
    """Nobody needs to ask for it."""
    async with Ledger(store, metrics, Retention()) as ledger:
        note(ledger)
        await until(lambda: ledger.pending == 0)
        assert (await total(store)).requests == 1


@pytest.mark.parametrize("harmed", [harm.rename_directory, harm.replace_by_directory, harm.other_revision])
async def test_rows_wait_while_the_database_cannot_be_written(
    store: UsageStore, metrics: Metrics, harmed: Callable[[Path], Callable[[], object]]
) -> None:
    """They are written once it heals, each once; it is counted, and logged once for each turn."""
    with log_of_usage() as lines:
        async with Ledger(store, metrics, Retention()) as ledger:
            note(ledger)
            await until(lambda: ledger.pending == 0)
            await until(lambda: moved_out_of_log(store.path))
            mend = harmed(store.path)
            try:
                for _ in range(3):
                    note(ledger)
                await until(lambda: value(metrics, "store_up") == 0)
                note(ledger)
                assert value(metrics, "rows_pending") == 4
            finally:
                mend()
            await until(lambda: ledger.pending == 0)
            assert value(metrics, "store_up") == 1
    assert [line["event"] for line in lines] == ["usage_not_written", "usage_written_again"]
    assert (await total(store)).requests == 5
    assert value(metrics, "rows_lost_total") == 0


async def test_flush_says_why_nothing_is_written_and_keeps_it(ledger: Ledger, store: UsageStore) -> None:
    """Who asks for it must not believe that it was done."""
    note(ledger)
    mend = harm.rename_directory(store.path)
    with pytest.raises(UsageStoreUnavailable, match="There is no usage database"):
        await ledger.flush()
    assert ledger.pending == 1
    mend()
    await ledger.flush()
    assert (await total(store)).requests == 1


async def test_memory_is_bounded_and_the_oldest_go(store: UsageStore, metrics: Metrics) -> None:
    """Each that is lost is counted; it is logged once for an outage, and told when it is over."""
    ledger = Ledger(store, metrics, Retention(), most_rows=1500)
    mend = harm.rename_directory(store.path)
    with log_of_usage() as lines:
        for _ in range(10):
            note(ledger, model="oldest")
        for number in range(1500):
            if number == 1200:  # more than a batch waits: what is given back goes before it
                with pytest.raises(UsageStoreUnavailable):
                    await ledger.flush()
            note(ledger)
        assert ledger.pending == 1500
        assert value(metrics, "rows_lost_total") == 10
        mend()
        await ledger.flush()
    assert [line["event"] for line in lines] == [
        "usage_not_written",
        "usage_rows_dropped",
        "usage_written_again",
    ]
    assert lines[-1]["rows_lost"] == 10
    assert await store.summary("model", BEGIN) == [("m", await total(store))]
    assert (await total(store)).requests == 1500


async def test_a_flood_of_refusals_is_folded(ledger: Ledger, store: UsageStore) -> None:
    """A hundred of a kind have rows of their own, the rest one with their count; all are counted."""
    refuse(ledger, 1000)
    refuse(ledger, 150, model="other")
    refuse(ledger, 7, status=400, reason="invalid_json")
    refuse(ledger, 120, status=503, reason="engine_unavailable")
    for _ in range(150):
        note(ledger)  # what was served is never folded, nor what has tokens
        note(ledger, status=499, reason="client_closed")
    await ledger.flush()
    counts = "SELECT reason, model, count(*), max(requests), sum(requests) FROM usage_rows GROUP BY 1, 2"
    assert database(store.path, counts) == [
        ("client_closed", "m", 150, 1, 150),
        ("engine_unavailable", "m", 101, 20, 120),
        ("invalid_json", "m", 7, 1, 7),
        ("ok", "m", 150, 1, 150),
        ("rate_limit_exceeded", "m", 101, 900, 1000),
        ("rate_limit_exceeded", "other", 101, 50, 150),
    ]
    assert (await total(store)).errors == 1277
    refuse(ledger, 20)
    await ledger.flush()
    assert (await total(store)).errors == 1297
    assert database(store.path, "SELECT count(*) FROM usage_rows WHERE status = 429") == [(222,)]


async def test_a_flood_while_nothing_can_be_written_stays_folded(ledger: Ledger, store: UsageStore) -> None:
    """It would push the rows of others out of memory."""
    mend = harm.rename_directory(store.path)
    for _ in range(3):
        refuse(ledger, 500)
        with pytest.raises(UsageStoreUnavailable):
            await ledger.flush()
    assert ledger.pending == 103
    mend()
    await ledger.flush()
    assert (await total(store)).errors == 1500


async def test_numbers_beyond_the_database_are_cut(ledger: Ledger, store: UsageStore) -> None:
    """An engine may say what it likes: no row keeps others from being written, and sums can be read."""
    most = 2**63 - 1
    details = {"prompt_tokens_details": {"cached_tokens": most}}
    for _ in range(3):
        note(ledger, usage=from_json({"prompt_tokens": most, "completion_tokens": 2**64 - 1, **details}))
    note(ledger)
    await ledger.flush()
    found = await total(store)
    assert found.prompt_tokens == 3 * MOST_TOKENS + 10
    assert found.cached_tokens >= 3 * MOST_TOKENS


async def test_requests_without_a_key_make_no_row(ledger: Ledger) -> None:
    """There is nobody to book them on."""
    note(ledger, key_id=None)
    assert ledger.pending == 0


async def test_what_cannot_be_written_at_the_stop_is_told(store: UsageStore, metrics: Metrics) -> None:
    """The log says how many rows went with it, and why."""
    with log_of_usage() as lines:
        async with Ledger(store, metrics, Retention()) as ledger:
            mend = harm.rename_directory(store.path)
            note(ledger)
            refuse(ledger, 150)
        mend()
    lost = [line for line in lines if line["event"] == "usage_rows_lost"]
    assert [line["rows"] for line in lost] == [151]
    assert lost[0]["cause"]
    assert value(metrics, "rows_lost_total") == 151


async def test_a_disk_that_hangs_does_not_hold_up_a_stop(tmp_path: Path, metrics: Metrics) -> None:
    """What was on its way and what waited behind it are given up, and counted."""

    class Hanging(UsageStore):
        async def write(self, rows: Sequence[UsageRow]) -> None:  # noqa: ARG002  the base's signature
            writing.set()
            await asyncio.Event().wait()

    writing = asyncio.Event()
    async with Hanging(tmp_path) as store:
        async with Ledger(store, metrics, Retention(), stop_seconds=0.1) as ledger:
            note(ledger)
            await writing.wait()
            note(ledger)
            refuse(ledger, 150)
        assert value(metrics, "rows_lost_total") == 152


async def test_it_tidies_at_the_start(store: UsageStore, metrics: Metrics) -> None:
    """By the settings that hold then, in steps until nothing is left to delete."""
    now = datetime.now(UTC)
    await store.write([row(now - timedelta(days=3)), row(now - timedelta(days=1, hours=2)), row(now)])
    async with Ledger(store, metrics, Retention(rollup_days=1, retention_days=2)):
        await until(lambda: database(store.path, "SELECT count(*) FROM usage_rows") == [(1,)])
        await until(lambda: database(store.path, "SELECT count(*) FROM usage_hours") == [(2,)])


async def test_new_settings_hold_from_the_next_tidying_on(store: UsageStore, metrics: Metrics) -> None:
    """A longer retention keeps what the old one would have deleted."""
    await store.write([row(datetime.now(UTC) - timedelta(days=3))])
    ledger = Ledger(store, metrics, Retention(rollup_days=1))
    ledger.configure(Retention(rollup_days=30))
    await ledger.tidy()
    assert database(store.path, "SELECT count(*) FROM usage_rows") == [(1,)]
    ledger.configure(Retention(rollup_days=1))
    await ledger.tidy()
    assert database(store.path, "SELECT count(*) FROM usage_rows") == [(0,)]


async def test_noting_waits_for_nothing(ledger: Ledger, store: UsageStore) -> None:
    """While the database is locked and a batch is on its way, the loop turns and rows are noted."""
    note(ledger)
    mend = harm.lock(store.path)
    try:
        flushing = asyncio.create_task(ledger.flush())
        turns = 0
        while not flushing.done():
            await asyncio.sleep(0.01)
            note(ledger)
            turns += 1
        assert turns > 3  # of 500; a loop that was held up turns once
        with pytest.raises(UsageStoreUnavailable):
            await flushing
    finally:
        mend()
    await ledger.flush()
    assert (await total(store)).requests == turns + 1
