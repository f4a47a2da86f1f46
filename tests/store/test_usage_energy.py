"""Energy is added up by the hour, and set against the tokens of the same hours."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.store import Energy, Period, UsageRow, UsageStore

HOUR = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = timedelta(hours=1)


@pytest.fixture(params=["UTC", "Asia/Kolkata"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[UsageStore]:
    """A fresh one; where hours are kept in halves too."""
    async with UsageStore(tmp_path, zone=ZoneInfo(request.param)) as store:
        yield store


def call(at: datetime, prompt: int, completion: int, key: str = "a") -> UsageRow:
    """One that ended then; of its prompt all but one token was cached."""
    return UsageRow(
        int(at.timestamp()) * 10**9, f"req_{at}{key}", None, key, "m", "/v1/completions", 200, "ok",
        prompt_tokens=prompt, cached_tokens=prompt - 1, completion_tokens=completion,
    )  # fmt: skip


async def test_what_was_not_measured_is_not_told(store: UsageStore) -> None:
    """A box without such cards has no figure, rather than none consumed."""
    await store.write([call(HOUR, 7, 3)])
    assert await store.energy(Period(HOUR - LATER)) is None


async def test_an_hour_is_the_sum_of_what_is_added(store: UsageStore) -> None:
    """Over the prompt and completion tokens of all keys; cached ones are prompt tokens already."""
    for joules in (100.0, 20.5):
        await store.add_energy(HOUR, joules)
    await store.write([call(HOUR + LATER / 4, 7, 3), call(HOUR + LATER * 3 / 4, 10, 20, key="b")])
    assert await store.energy(Period(HOUR)) == Energy(120.5, 40)


async def test_tokens_of_hours_without_a_measurement_are_left_out(store: UsageStore) -> None:
    """They would make each token look cheaper than it is."""
    await store.add_energy(HOUR, 100.0)
    await store.write([call(HOUR + timedelta(minutes=1), 5, 5), call(HOUR + LATER, 1000, 1000)])
    assert await store.energy(Period(HOUR - LATER)) == Energy(100.0, 10)


async def test_hours_at_the_ends_of_a_period_count_whole(store: UsageStore) -> None:
    """Joules and tokens of the same hours, however the period lies in them."""
    for number in range(4):
        await store.add_energy(HOUR + number * LATER, 10.0**number)
        await store.write([call(HOUR + number * LATER + LATER / 3, 10**number, 0)])
    half = timedelta(minutes=30)
    assert await store.energy(Period(HOUR + LATER + half, HOUR + 2 * LATER + half)) == Energy(110.0, 110)
    assert await store.energy(Period(HOUR + LATER, HOUR + 2 * LATER)) == Energy(10.0, 10)
    assert await store.energy(Period(HOUR + 9 * LATER)) is None


async def test_old_hours_go_with_the_sums_of_usage(store: UsageStore) -> None:
    """After `retention_days`, not after `rollup_days`."""
    for days in (1, 40, 500):
        await store.add_energy(HOUR - timedelta(days=days), float(days))
    while await store.tidy(HOUR, 30, 400):
        pass
    assert await store.energy(Period(HOUR - timedelta(days=1000))) == Energy(41.0, 0)
