"""Days and months begin at 00:00 of the operator's clock, when clocks change and when they are wrong."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from gateway.limits.window import DAY_SECONDS, Window, day_of, month_of

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: tzinfo = UTC) -> float:
    """A moment, in Unix seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("UTC", "2026-03-29T12:00", 24),
        ("Europe/Berlin", "2026-03-28T12:00", 24),
        ("Europe/Berlin", "2026-03-29T12:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00", 25),
        ("Asia/Kolkata", "2026-03-29T12:00", 24),
        ("Africa/Cairo", "2024-04-26T12:00", 23),  # 00:00 is not on the clock
        ("Africa/Cairo", "2024-10-31T12:00", 25),  # 23:00 comes twice
        ("America/Havana", "2024-11-03T12:00", 25),  # 00:00 comes twice
        ("Pacific/Apia", "2011-12-29T12:00", 24),  # the 30th did not take place
        ("Australia/Lord_Howe", "2026-10-04T12:00", 23.5),
    ],
)
def test_a_day_is_as_long_as_it_is(zone: str, now: str, hours: float) -> None:
    """From one midnight to the next, not 24 hours; both ends are found from anywhere within."""
    place = ZoneInfo(zone)
    window = Window(day_of, place, at(now, place))
    holds_from = window.holds_from
    assert window.ends_at - holds_from - DAY_SECONDS == hours * 3600
    for moment in (holds_from + DAY_SECONDS, window.ends_at - 1):
        again = Window(day_of, place, moment)
        assert (again.holds_from, again.ends_at) == (holds_from, window.ends_at)
    assert window.at(window.ends_at - 1) == 1
    assert window.at(window.ends_at) == 2


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        ("2026-01-01T00:00", "2026-02-01T00:00"),
        ("2026-01-31T23:59", "2026-02-01T00:00"),
        ("2026-02-28T23:59", "2026-03-01T00:00"),
        ("2028-02-29T12:00", "2028-03-01T00:00"),
        ("2026-03-29T12:00", "2026-04-01T00:00"),
        ("2026-12-31T23:59", "2027-01-01T00:00"),
    ],
)
def test_a_month_ends_where_the_next_begins(now: str, ends: str) -> None:
    """Whatever its length, summer time within or not."""
    assert Window(month_of, BERLIN, at(now, BERLIN)).ends_at == at(ends, BERLIN)


def test_a_clock_that_is_set_back_a_little_does_not_begin_a_day_again() -> None:
    """Or what is spent at midnight could be spent again a minute later."""
    midnight = at("2026-05-02T00:00")
    window = Window(day_of, UTC, midnight - 10)
    assert window.at(midnight + 10) == 2
    assert window.at(midnight - 30) == 2
    assert window.at(midnight + 5) == 2
    assert window.ends_at == midnight + DAY_SECONDS
    assert window.at(midnight + DAY_SECONDS) == 3


def test_a_clock_that_was_years_ahead_does_not_hold_a_budget_back_for_years() -> None:
    """Put right, it gives the right end again; what was spent stays spent."""
    now = at("2026-05-02T12:00")
    window = Window(day_of, UTC, now)
    assert window.at(at("2036-01-01T12:00")) == 2
    assert window.at(now) == 2
    assert window.ends_at == at("2026-05-03T00:00")
    assert window.at(window.ends_at) == 3


def test_days_that_nobody_called_on_are_one_step() -> None:
    """The number tells another day, not how many."""
    now = at("2026-05-02T12:00")
    window = Window(day_of, UTC, now)
    assert window.at(now + 100 * DAY_SECONDS) == 2
    assert window.ends_at == at("2026-08-11T00:00")


def test_another_zone_is_another_window() -> None:
    """It begins where that zone's day does."""
    now = at("2026-05-02T23:30")
    window = Window(day_of, UTC, now)
    window.begin(BERLIN, now)
    assert window.at(now) == 2
    assert window.ends_at == at("2026-05-04T00:00", BERLIN)
