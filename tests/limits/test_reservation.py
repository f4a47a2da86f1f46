"""What a call has taken comes back exactly once, in whatever order and however often it is said."""

from itertools import product

import pytest

from gateway.limits import Reservation
from tests.limits.worlds import World, key

LIMITS = {"rpm": 10, "tpm": 1000, "max_parallel": 3, "tokens_per_day": 1000, "tokens_per_month": 2000}
ENDINGS = {
    "settle": lambda call: call.settle(30),
    "refund": lambda call: call.refund(request=False),
    "refund all": lambda call: call.refund(request=True),
    "close": lambda call: call.close(),
}
AFTER = {"settle": ("9", "970", 0.03), "refund": ("9", "1000", 0), "refund all": ("10", "1000", 0)}
AFTER["close"] = AFTER["refund all"]


def stands(world: World) -> tuple[str, str, float | None]:
    """Requests and tokens that remain, and what is spent of the day."""
    headers = world.headers(key(**LIMITS))
    return headers["remaining-requests"], headers["remaining-tokens"], world.used_ratio("tokens_per_day")


@pytest.mark.parametrize("order", list(product(ENDINGS, repeat=3)))
def test_the_first_word_decides_and_each_is_harmless_afterwards(order: tuple[str, str, str]) -> None:
    """Settled, given back or closed first; any three in any order, and all closed at last."""
    world = World()
    call = world.reserve(key(**LIMITS), 400)
    for number, name in enumerate(order):
        ENDINGS[name](call)
        requests, tokens, ratio = AFTER[order[0]]
        is_open = "close" not in order[: number + 1]
        assert stands(world) == ("9" if is_open else requests, tokens, ratio)  # who runs is told as taken
        assert world.limits.reserved_tokens() == 0
        assert world.limits.open_slots() == is_open
    call.close()
    assert world.limits.open_slots() == 0


def test_a_call_that_runs_is_counted_with_what_it_reserved() -> None:
    """A slot, its tokens, a request."""
    world = World()
    world.reserve(key(**LIMITS), 400)
    assert stands(world) == ("9", "600", 0)
    assert (world.limits.open_slots(), world.limits.reserved_tokens()) == (1, 400)


def test_using_more_than_was_reserved_takes_a_bucket_below_zero() -> None:
    """The next call waits for it."""
    world = World()
    caller = key(tpm=60)
    world.reserve(caller, 60).settle(90)
    assert world.headers(caller) == {"limit-tokens": "60", "remaining-tokens": "0", "reset-tokens": "1m30s"}
    assert world.refused(caller, 1).retry_after == 31


def limited(world: World, **limits: int) -> Reservation:
    """A call of 40 tokens under these limits."""
    return world.reserve(key(**limits), 40)


@pytest.mark.parametrize(
    ("before", "after", "remaining"),
    [
        ({"tpm": 100}, {"tpm": 1000}, "900"),
        ({"tpm": 1000}, {"tpm": 100}, "99"),
        ({}, {"tpm": 100}, "100"),  # began without the limit
        ({"tpm": 100}, {}, None),
    ],
)
def test_limits_may_change_between_reserve_and_settle(
    before: dict[str, int], after: dict[str, int], remaining: str | None
) -> None:
    """The call counts as the share that it was; a limit that it began without does not count it."""
    world = World()
    call = limited(world, **before)
    world.headers(key(**after))
    call.settle(10)
    assert world.headers(key(**after)).get("remaining-tokens") == remaining
    call.close()
    assert (world.limits.open_slots(), world.limits.reserved_tokens()) == (0, 0)


def test_a_limit_that_was_away_begins_full_and_old_calls_do_not_reach_it() -> None:
    """They settle with the bucket that they took from."""
    world = World()
    call = limited(world, tpm=100, rpm=1)
    world.headers(key())
    world.headers(key(tpm=100, rpm=1))
    call.settle(90)
    assert world.headers(key(tpm=100, rpm=1))["remaining-tokens"] == "100"
    limited(world, tpm=100, rpm=1)


def test_a_huge_estimate_holds_no_more_of_a_budget_than_is_left_and_all_of_it_comes_back() -> None:
    """A thousand million tokens on a budget of a hundred."""
    world = World()
    caller = key(tokens_per_day=100, tokens_per_month=150)
    for used in (60, 30, 9):
        call = world.reserve(caller, 10**9)
        assert world.limits.reserved_tokens() == 10**9
        call.settle(used)
        call.close()
    world.reserve(caller, 1).settle(0)
    assert world.used_ratio("tokens_per_day") == 0.99
    assert world.used_ratio("tokens_per_month") == 0.66
