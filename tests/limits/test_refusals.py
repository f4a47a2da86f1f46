"""What a caller is told who has reached a limit is true: which one, its value, and how long to wait."""

import pytest

from gateway.errors import InsufficientQuota
from tests.limits.worlds import World, key


def test_a_refusal_by_rpm_tells_when_and_it_is_true() -> None:
    """To the second: not one earlier, and then at the first try."""
    world = World()
    caller = key(rpm=7)
    for _ in range(7):
        world.reserve(caller)
    error = world.refused(caller)
    assert (error.status, error.code, error.type) == (429, "rate_limit_exceeded", "rate_limit_error")
    assert (error.retry_after, error.should_retry) == (9, None)
    assert error.message == (
        "Your key may make 7 requests a minute (rpm), and they are used up. Try again in 9 seconds."
    )
    world.pass_exactly_as_told(caller)


def test_a_refusal_by_tpm_tells_what_was_asked_and_what_is_left() -> None:
    """The wait is for as much as this call needs."""
    world = World()
    caller = key(tpm=1000)
    world.reserve(caller, 900)
    error = world.refused(caller, 601)
    assert error.retry_after == 31
    assert error.message == (
        "Your key may use 1000 tokens a minute (tpm). This call may need 601, prompt and answer together, "
        "and 100 are left. Try again in 31 seconds."
    )
    world.pass_exactly_as_told(caller, 601)


@pytest.mark.parametrize("tokens", [1001, 10**9])
def test_a_call_larger_than_a_whole_minute_is_told_so(tokens: int) -> None:
    """No time to wait, no reason to retry, and the mend; whatever else stands in its way."""
    world = World()
    caller = key(rpm=1, tpm=1000, max_parallel=1, tokens_per_day=1)
    world.reserve(caller, 1).settle(1)
    error = world.refused(caller, tokens)
    assert (error.code, error.retry_after, error.should_retry) == ("rate_limit_exceeded", None, False)
    for words in (str(tokens), "1000", "(tpm)", "waiting does not help", "Ask for less"):
        assert words in error.message
    world = World()
    world.reserve(caller, 1000)


def test_a_wait_beyond_two_minutes_is_told_in_words_alone() -> None:
    """SDKs give up beyond what Retry-After says then."""
    world = World()
    caller = key(tpm=60)
    world.reserve(caller, 1).settle(600)
    error = world.refused(caller, 1)
    assert error.retry_after == 120
    assert "Try again in 541 seconds." in error.message
    world.wait(540)
    world.refused(caller, 1)
    world.wait(1)
    world.reserve(caller, 1)


def test_slots_are_given_out_one_by_one() -> None:
    """The wait is a hint: nobody knows when a call ends."""
    world = World()
    caller = key(max_parallel=1)
    call = world.reserve(caller)
    error = world.refused(caller)
    assert (error.code, error.retry_after, error.should_retry) == ("rate_limit_exceeded", 1, None)
    assert error.message == (
        "Your key may have 1 call running at once (max_parallel), and as many are. Wait until one has ended."
    )
    call.close()
    world.reserve(caller)


@pytest.mark.parametrize(
    ("name", "renews"),
    [("tokens_per_day", "2026-03-28 00:00"), ("tokens_per_month", "2026-04-01 00:00")],
)
def test_a_spent_budget_says_when_it_renews_and_does(name: str, renews: str) -> None:
    """Waiting that long succeeds; the SDKs are told not to try."""
    world = World()
    caller = key(**{name: 100})
    world.reserve(caller, 60).settle(101)
    error = world.refused(caller, 1)
    assert isinstance(error, InsufficientQuota)
    assert (error.status, error.code, error.type) == (429, "insufficient_quota", "insufficient_quota")
    assert error.should_retry is False
    assert f"100 tokens a {name.split('_')[-1]} ({name})" in error.message
    assert f"renew at {renews} (UTC)" in error.message
    assert world.used_ratio(name) == 1.01
    world.pass_exactly_as_told(caller, 1)
    assert world.used_ratio(name) == 0


def test_while_running_calls_hold_the_rest_of_a_budget_others_wait_for_them() -> None:
    """It is not spent yet: what they do not use is there for others."""
    world = World()
    caller = key(tokens_per_day=100)
    call = world.reserve(caller, 10**9)
    error = world.refused(caller, 1)
    assert (error.code, error.retry_after, error.should_retry) == ("rate_limit_exceeded", 1, None)
    assert "what your running calls have reserved" in error.message
    assert "(tokens_per_day)" in error.message
    call.settle(99)
    world.reserve(caller, 500)


def test_a_budget_is_overshot_by_one_calls_use_at_most() -> None:
    """Twenty at once that each ask for little and use much: the one that is let in last."""
    world = World()
    caller = key(tokens_per_day=100)
    calls = [world.reserve(caller, 5) for _ in range(20)]
    world.refused(caller, 5)
    for call in calls[:19]:
        call.settle(5)
    calls[19].settle(400)
    assert isinstance(world.refused(caller, 1), InsufficientQuota)


def test_of_several_limits_the_one_that_stands_longest_is_told() -> None:
    """Waiting for it is enough, so one refusal is one wait; it alone is counted."""
    world = World()
    caller = key(rpm=1, tpm=60, max_parallel=1)
    call = world.reserve(caller, 60)
    world.wait(30)
    error = world.refused(caller, 45)
    assert ("(rpm)" in error.message, error.retry_after) == (True, 30)
    error = world.refused(key(rpm=6, tpm=60, max_parallel=1), 45)
    assert ("(tpm)" in error.message, error.retry_after) == (True, 15)
    assert [world.limited(name) for name in ("rpm", "tpm", "max_parallel")] == [1, 1, None]
    call.settle(60)
    call.close()
    world.pass_exactly_as_told(caller, 45)
