"""A bucket lets pass what its limit says, to the nanosecond, and what is given back is worth what it was."""

import random
from fractions import Fraction
from math import ceil, floor

import pytest

from gateway.limits.bucket import MINUTE_NS, Bucket, Claim, Layer
from tests.limits import model
from tests.limits.worlds import SECOND_NS

Step = tuple[str, int, int]


def steps(seed: int, count: int = 50) -> list[Step]:
    """What happens to one bucket: each part of the next is likely to meet what the last has left."""
    chance = random.Random(seed)  # noqa: S311  for variety, not for secrecy

    def step() -> Step:
        what = chance.choices(["take", "settle", "wait", "spend"], [10, 7, 8, 1])[0]
        if what == "wait":
            return what, chance.choice([1, 5, 10, 10, 15, 60]), 0
        return what, chance.randint(0, 3), chance.randint(0, 5) if what == "settle" else 0

    return [step() for _ in range(count)]


def layers(bucket: Bucket) -> list[Layer]:
    """From the top."""
    found, layer = [], bucket._top
    while layer is not None:
        found.append(layer)
        layer = layer.below
    return found


class Pair:
    """A bucket and its model, which are told the same."""

    def __init__(self, limit: int) -> None:
        self.now = 0
        self.bucket = Bucket(limit, 0)
        self.rate = model.Rate(limit)
        self.claims: list[tuple[Claim, model.Taking]] = []

    def step(self, what: str, first: int, second: int) -> None:
        """One thing happens; what cannot does not."""
        if what == "wait":
            self.now += first * SECOND_NS
        elif what == "spend":
            self.bucket.spend(first, self.now)
            model.take(self.rate, first, self.now)
        elif what == "take" and self.bucket.wait_ns(first, self.now) == 0:
            taking = model.take(self.rate, first, self.now)
            assert taking is not None
            self.claims.append((self.bucket.take(first), taking))
        elif what == "settle" and self.claims:
            claim, taking = self.claims.pop(first % len(self.claims))
            claim.settle(second, self.now)
            taking.settle(second, self.now)

    def agree(self) -> None:
        """On what is there, and on the nanosecond at which more is."""
        limit, missing = self.rate.limit, self.rate.missing(self.now)
        full_in_ns = ceil(missing * MINUTE_NS / limit)
        assert self.bucket.standing(self.now) == (max(0, floor(limit - missing)), full_in_ns)
        for tokens in (1, limit):
            assert self.bucket.wait_ns(tokens, self.now) == max(0, ceil(self.rate.wait(tokens, self.now)))


@pytest.mark.parametrize("seed", range(50))
def test_it_stands_where_it_would_had_each_call_taken_what_it_used(seed: int) -> None:
    """Whatever is taken, settled and waited for in whatever order; without rounding."""
    pair = Pair(6 + seed % 3)
    for step in steps(seed):
        pair.step(*step)
        pair.agree()
        kept = layers(pair.bucket)
        assert sum(layer.parts for layer in kept) == pair.rate.missing(pair.now) * MINUTE_NS
        assert all(layer.parts > 0 for layer in kept)
        assert len(kept) <= len(pair.claims) + 1


def test_what_is_given_back_after_it_has_refilled_by_itself_is_worth_nothing() -> None:
    """Otherwise twice the limit would pass at one moment."""
    bucket = Bucket(10, 0)
    first = bucket.take(10)
    assert bucket.wait_ns(10, MINUTE_NS) == 0
    bucket.take(10)
    first.settle(0, MINUTE_NS)
    assert bucket.remaining(MINUTE_NS) == 0


def test_what_is_given_back_at_once_is_there_at_once() -> None:
    """As though it had never been taken."""
    bucket = Bucket(10, 0)
    claim = bucket.take(10)
    claim.settle(4, 0)
    assert bucket.standing(0) == (6, 4 * MINUTE_NS // 10)


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 997, 10**6, 2**53 - 1])
def test_a_full_minute_is_there_again_after_a_minute_and_not_a_nanosecond_before(limit: int) -> None:
    """Small limits and the largest."""
    bucket = Bucket(limit, 5)
    bucket.take(limit)
    assert bucket.wait_ns(limit, 5) == MINUTE_NS
    assert bucket.wait_ns(limit, 5 + MINUTE_NS - 1) == 1
    assert bucket.wait_ns(limit, 5 + MINUTE_NS) == 0


def test_a_clock_that_stands_still_or_goes_back_refills_nothing() -> None:
    """The monotonic one never does; nothing depends on it."""
    bucket = Bucket(10, MINUTE_NS)
    bucket.take(10)
    assert bucket.remaining(0) == bucket.remaining(MINUTE_NS) == 0


@pytest.mark.parametrize(("before", "after", "there"), [(10, 100, 40), (100, 10, 4), (10, 10, 4), (3, 7, 0)])
def test_a_changed_limit_keeps_the_share_that_is_there(before: int, after: int, there: int) -> None:
    """Neither a full bucket nor an empty one for whoever has half of it; rounded down."""
    bucket = Bucket(before, 0)
    bucket.take(before * 6 // 10 if before > 3 else 3)
    bucket.change(after, 0)
    assert bucket.remaining(0) == there


@pytest.mark.parametrize(("used", "remaining"), [(500, 50), (300, 70), (0, 100), (600, 40)])
def test_a_call_that_took_under_another_limit_counts_as_the_share_that_it_was(
    used: int, remaining: int
) -> None:
    """500 of 1000 are 50 of 100; who uses what was reserved is not charged ten times for a change."""
    bucket = Bucket(1000, 0)
    claim = bucket.take(500)
    bucket.change(100, 0)
    assert bucket.remaining(0) == 50
    claim.settle(used, 0)
    assert bucket.remaining(0) == remaining


@pytest.mark.parametrize("seed", range(20))
def test_changes_of_the_limit_round_by_less_than_anybody_sees(seed: int) -> None:
    """To a part of 60·10⁹ of a token for each layer."""
    pair = Pair(6)
    for number, step in enumerate(steps(seed)):
        if number % 8 == 7:
            limit = (7, 5, 1000, 6, 1)[(seed + number // 8) % 5]
            pair.bucket.change(limit, pair.now)
            if limit != pair.rate.limit:
                pair.rate.events.append(model.Event(pair.now, limit=limit))
        pair.step(*step)
        pair.bucket.remaining(pair.now)
        exact = pair.rate.missing(pair.now)
        missing = Fraction(sum(layer.parts for layer in layers(pair.bucket)), MINUTE_NS)
        assert abs(missing - exact) < Fraction(1, 10**6)


def test_ten_thousand_calls_after_each_other_leave_one_layer() -> None:
    """Memory is for calls that run."""
    bucket = Bucket(10**6, 0)
    for now in range(10_000):
        assert bucket.wait_ns(60, now * SECOND_NS // 1000) == 0
        bucket.take(60).settle(50, now * SECOND_NS // 1000)
    assert len(layers(bucket)) <= 1
    assert bucket.remaining(10_000 * SECOND_NS) == 10**6
    assert layers(bucket) == []
