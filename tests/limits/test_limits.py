"""All limits of a key in one decision: which hold, what they let in, and what a refusal takes."""

import gc
import sys

import pytest

from gateway.errors import InsufficientQuota
from gateway.keys.key import UNLIMITED, Limit
from gateway.limits import Limits
from gateway.metrics import Metrics
from gateway.settings.sections import DefaultLimits
from tests.limits.worlds import World, key

MANY = 50
LARGEST = 2**53 - 1


def let_in(world: World, own: Limit, default: int | None, name: str) -> int:
    """How many calls of one token pass at once under one limit."""
    caller, defaults = key(**{name: own}), DefaultLimits(**{name: default})
    for passed in range(MANY):
        try:
            call = world.reserve(caller, 1, defaults)
        except Exception:  # noqa: BLE001  any refusal is the end of the count
            return passed
        if name.startswith("tokens"):
            call.settle(1)
    return MANY


@pytest.mark.parametrize("name", ["rpm", "tpm", "max_parallel", "tokens_per_day", "tokens_per_month"])
@pytest.mark.parametrize(
    ("own", "default", "most"),
    [
        (2, None, 2), (None, 3, 3), (2, 9, 2), (9, 2, 9), (1, None, 1),
        (UNLIMITED, 2, MANY), (None, None, MANY), (LARGEST, 1, MANY), (None, LARGEST, MANY),
    ],
)  # fmt: skip
def test_a_keys_own_limit_counts_before_the_default(
    name: str, own: Limit, default: int | None, most: int
) -> None:
    """Unset: the default; "unlimited": not even that."""
    world = World()
    assert let_in(world, own, default, name) == most
    assert world.limited(name) == (1 if most < MANY else None)


def test_a_changed_default_holds_at_once() -> None:
    """For keys that have no limit of their own."""
    world = World()
    caller = key()
    world.reserve(caller, 1, DefaultLimits(max_parallel=1))
    world.refused(caller, 1, DefaultLimits(max_parallel=1))
    world.reserve(caller, 1, DefaultLimits(max_parallel=2))


def test_the_first_call_of_a_key_sees_one_less() -> None:
    """And whoever only asks takes nothing."""
    world = World()
    caller = key(rpm=30)
    assert world.headers(caller)["remaining-requests"] == "30"
    world.reserve(caller, 5)
    assert world.headers(caller) == {
        "limit-requests": "30",
        "remaining-requests": "29",
        "reset-requests": "2s",
    }


def test_a_refusal_takes_nothing() -> None:
    """Of no limit, whichever of them refuses."""
    for spare in ({"rpm": 1}, {"tpm": 10}, {"max_parallel": 1}, {"tokens_per_day": 10}):
        world = World()
        caller = key(**{"rpm": 1000, "tpm": 1000, "max_parallel": 9, "tokens_per_day": 1000, **spare})
        world.reserve(caller, 10)
        before = world.headers(caller), world.limits.open_slots(), world.limits.reserved_tokens()
        for _ in range(5):
            world.refused(caller, 10)
        assert (world.headers(caller), world.limits.open_slots(), world.limits.reserved_tokens()) == before


def test_what_needs_no_tokens_does_not_wait_for_them() -> None:
    """Counting tokens is a request and no more."""
    world = World()
    caller = key(rpm=9, tpm=10, tokens_per_day=10)
    world.reserve(caller, 1).settle(50)
    world.refused(caller, 1)
    world.reserve(caller, 0)


def test_a_call_that_is_refused_for_what_it_says_costs_a_request() -> None:
    """No tokens and no slot; without a request left it is told so."""
    world = World()
    caller = key(rpm=2, tpm=10, max_parallel=1)
    world.reserve(caller, 10)
    world.spend_request(caller)
    assert world.headers(caller)["remaining-requests"] == "0"
    with pytest.raises(Exception, match="rpm"):
        world.spend_request(caller)
    assert world.limited("rpm") == 1
    assert world.limits.open_slots() == 1
    world.wait(30)
    world.spend_request(caller)
    world.spend_request(key("unlimited"))


def test_keys_do_not_count_for_each_other() -> None:
    """One at its limit leaves the others theirs."""
    world = World()
    for name in ("one", "two"):
        world.reserve(key(name, rpm=1, tpm=9, max_parallel=1, tokens_per_day=9), 9)
    world.refused(key("one", rpm=1), 1)


def test_a_lowered_max_parallel_lets_running_calls_end() -> None:
    """New ones wait until as many are left as it allows now."""
    world = World()
    calls = [world.reserve(key(max_parallel=5)) for _ in range(5)]
    for call in calls:
        world.refused(key(max_parallel=1))
        call.close()
    world.reserve(key(max_parallel=1))


def test_a_changed_budget_acts_at_once_on_what_is_spent() -> None:
    """One that is set later, too."""
    world = World()
    world.reserve(key(), 1).settle(700)
    assert isinstance(world.refused(key(tokens_per_day=700), 1), InsufficientQuota)
    assert world.used_ratio("tokens_per_day") == 1
    world.reserve(key(tokens_per_day=701), 1)


def test_a_call_counts_in_the_day_in_which_it_ends() -> None:
    """What it holds meanwhile is held of that day too."""
    world = World()
    caller = key(tokens_per_day=100)
    world.wait(12 * 3600 - 1)
    call = world.reserve(caller, 70)
    world.wait(2)
    other = world.reserve(caller, 70)
    world.refused(caller, 1)
    other.refund(request=True)
    call.settle(70)
    assert world.used_ratio("tokens_per_day") == 0.7


def test_a_clock_set_back_over_midnight_renews_no_budget_twice() -> None:
    """And none is negative."""
    world = World()
    caller = key(tokens_per_day=100)
    world.wait(12 * 3600)
    world.reserve(caller, 1).settle(100)
    world.now -= 60
    error = world.refused(caller, 1)
    assert error.retry_after == 24 * 3600 + 60
    world.wait(60)
    world.refused(caller, 1)


def test_keys_cost_little_memory() -> None:
    """Of each that has called under three limits, once its buckets are full again."""
    world = World()
    callers = [key(f"{number:012}", rpm=60, tpm=60, tokens_per_day=10**6) for number in range(1000)]
    for caller in callers:
        world.reserve(caller, 1).settle(1)
    world.wait(60)
    for caller in callers:
        world.reserve(caller, 0).close()
        world.headers(caller)
    gc.collect()
    size = sum(sys.getsizeof(part) for part in _parts(world.limits))
    assert size / len(callers) < 700


def _parts(limits: Limits) -> list[object]:
    """What is held for each key."""
    found: list[object] = [limits._accounts]
    for account in limits._accounts.values():
        found += [account, account.terms, account.requests, account.tokens, account.day, account.month]
        assert account.requests is not None
        assert account.requests._top is None
    return found


def test_two_limiters_stand_beside_each_other() -> None:
    """No state is the module's."""
    first, second = Limits(Metrics()), Limits(Metrics())
    assert first.open_slots() == second.open_slots() == 0
