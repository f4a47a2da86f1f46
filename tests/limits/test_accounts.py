"""Which keys something is kept of: what the books tell at start, and nothing once a key is forgotten."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.errors import InsufficientQuota
from tests.limits.worlds import World, key

BUDGETS = {"tokens_per_day": 100, "tokens_per_month": 1000}
DAY = 24 * 3600


def test_at_start_budgets_go_on_where_the_books_say() -> None:
    """Of keys that call, when they call."""
    world = World()
    world.limits.begin(UTC, {"a-key": 60}, {"a-key": 600, "other": 1000})
    world.reserve(key(**BUDGETS), 1).settle(10)
    assert world.used_ratio("tokens_per_day") == 0.7
    assert world.used_ratio("tokens_per_month") == 0.61
    assert "(tokens_per_month)" in world.refused(key("other", **BUDGETS), 1).message
    world.reserve(key("third", **BUDGETS), 1)


def test_another_zone_replaces_what_was_counted_and_keeps_what_running_calls_hold() -> None:
    """They end under the new one."""
    world = World()
    caller = key(**BUDGETS)
    world.reserve(caller, 1).settle(90)
    call = world.reserve(caller, 8)
    world.limits.begin(ZoneInfo("Pacific/Auckland"), {"a-key": 15}, {"a-key": 95})
    assert world.used_ratio("tokens_per_day") == 0.15
    assert world.used_ratio("tokens_per_month") == 0.095
    call.settle(5)
    assert world.used_ratio("tokens_per_day") == 0.2
    world.reserve(caller, 1).settle(100)
    assert "renew at 2026-03-29 00:00 (NZDT, Pacific/Auckland)" in world.refused(caller, 1).message


def test_zones_are_named_as_their_clocks_are() -> None:
    """Summer time begins on the day between."""
    world = World(datetime(2026, 3, 29, 9, tzinfo=UTC).timestamp())
    world.limits.begin(ZoneInfo("Europe/Berlin"), {"a-key": 100}, {})
    error = world.refused(key(**BUDGETS), 1)
    assert "renew at 2026-03-30 00:00 (CEST, Europe/Berlin)" in error.message
    assert error.retry_after == 13 * 3600


@pytest.mark.parametrize(("days", "day", "month"), [(0.4, 1.0, 0.5), (1, 0, 0.5), (5, 0, 0)])
def test_what_the_books_told_ends_with_its_day_and_month(days: float, day: float, month: float) -> None:
    """For a key that calls only then; it is noon of the 27th."""
    world = World()
    world.limits.begin(UTC, {"a-key": 100}, {"a-key": 500})
    world.wait(days * DAY)
    if day:
        assert isinstance(world.refused(key(**BUDGETS), 1), InsufficientQuota)
    else:
        world.reserve(key(**BUDGETS), 1)
    assert (world.used_ratio("tokens_per_day"), world.used_ratio("tokens_per_month")) == (day, month)


def remembered(world: World) -> tuple[int, int]:
    """Of how many keys without an account something is known, for the day and the month."""
    return len(world.limits._day), len(world.limits._month)


def test_of_a_forgotten_key_nothing_is_kept_but_what_it_has_spent() -> None:
    """Neither buckets nor a series; and that until the day and the month are over."""
    world = World()
    call = world.reserve(key(**BUDGETS), 1)
    call.settle(5)
    call.close()
    world.reserve(key("other", rpm=1), 1).close()
    for key_id in ("a-key", "other", "never heard of"):
        world.limits.forget(key_id)
    assert len(world.limits._accounts) == 0
    assert world.used_ratio("tokens_per_day") is None
    assert remembered(world) == (1, 1)
    world.wait(5 * DAY)
    world.reserve(key("third"), 1)
    assert remembered(world) == (0, 0)


def test_a_key_is_forgotten_when_its_last_call_has_ended() -> None:
    """Its calls settle and close as ever; headers of an answer on its way bring nothing back."""
    world = World()
    caller = key(max_parallel=2, **BUDGETS)
    calls = [world.reserve(caller, 7) for _ in range(2)]
    world.limits.forget("a-key")
    assert world.used_ratio("tokens_per_day") is None
    calls[0].settle(3)
    calls[0].close()
    assert (world.limits.open_slots(), world.limits.reserved_tokens()) == (1, 7)
    calls[1].close()
    calls[1].close()
    world.headers(caller)
    assert len(world.limits._accounts) == 0
    assert (world.limits.open_slots(), world.limits.reserved_tokens()) == (0, 0)


def test_a_key_that_is_given_more_time_goes_on_where_it_was() -> None:
    """It had expired: its budgets are not renewed by that."""
    world = World()
    caller = key(**BUDGETS)
    call = world.reserve(caller, 1)
    world.limits.forget("a-key")
    call.settle(60)
    call.close()
    world.reserve(caller, 1).settle(10)
    assert world.used_ratio("tokens_per_day") == 0.7
    world.limits.forget("a-key")
    world.wait(DAY)
    world.reserve(caller, 1).settle(10)
    assert world.used_ratio("tokens_per_day") == 0.1
    assert world.used_ratio("tokens_per_month") == 0.08


def test_a_key_that_calls_again_while_a_call_is_running_is_known_again() -> None:
    """Nothing of it goes when that call ends."""
    world = World()
    caller = key(rpm=9, **BUDGETS)
    call = world.reserve(caller, 1)
    world.limits.forget("a-key")
    again = world.reserve(caller, 1)
    call.close()
    again.settle(50)
    again.close()
    assert world.used_ratio("tokens_per_day") == 0.5
    assert world.headers(caller)["remaining-requests"] == "8"


def test_only_budgets_that_there_are_have_a_series() -> None:
    """It goes when the budget does."""
    world = World()
    world.reserve(key(tokens_per_day=10), 1).settle(5)
    assert (world.used_ratio("tokens_per_day"), world.used_ratio("tokens_per_month")) == (0.5, None)
    world.reserve(key(), 1)
    assert world.used_ratio("tokens_per_day") is None
