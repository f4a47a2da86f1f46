"""Everything that one key has used and holds; over all of it is judged whether a call may run."""

from collections.abc import Callable, Iterator

from gateway.keys import Key
from gateway.limits import wording
from gateway.limits.bucket import Bucket
from gateway.limits.budget import Budget
from gateway.limits.clocks import Clocks
from gateway.limits.terms import NO_TERMS, Terms
from gateway.limits.window import Window
from gateway.limits.wording import Refusal
from gateway.settings.sections import DefaultLimits


class Account:
    """One key's buckets, budgets and running calls, under the limits that it had when it was last asked.

    A key without a limit has no bucket for it; one that gets a limit begins with a full one. What is spent
    is counted for every key, since a budget may be set later. `put_away` is that of a key that is gone: it is
    called once no call runs.
    """

    __slots__ = (
        "_defaults", "_key", "clocks", "day", "month", "put_away", "requests", "reserved", "running", "terms",
        "tokens",
    )  # fmt: skip

    def __init__(self, clocks: Clocks, day: Budget, month: Budget) -> None:
        self._key: Key | None = None
        self._defaults: DefaultLimits | None = None
        self.put_away: Callable[[], object] | None = None
        self.clocks = clocks
        self.terms = NO_TERMS
        self.requests: Bucket | None = None
        self.tokens: Bucket | None = None
        self.day = day
        self.month = month
        self.running = 0  # calls that hold a slot
        self.reserved = 0  # tokens of those that are not settled

    def adopt(self, key: Key, defaults: DefaultLimits, now_ns: int) -> None:
        """From now on these limits hold. A bucket stays as full as it is, as a share."""
        if key is self._key and defaults is self._defaults:
            return
        self._key, self._defaults = key, defaults
        terms = Terms.of(key, defaults)
        if terms != self.terms:
            self.terms = terms
            self.requests = _changed(self.requests, terms.rpm, now_ns)
            self.tokens = _changed(self.tokens, terms.tpm, now_ns)

    def refusal(self, tokens: int, smaller: str, now_ns: int) -> Refusal | None:
        """Why a call of so many tokens may not run now: the limit that stands in its way the longest.

        `smaller` is the advice to a call that no minute has tokens enough for.
        """
        worst = self.no_request_left(now_ns)
        limit = self.terms.max_parallel
        if limit is not None and self.running >= limit:
            worst = _worse(worst, wording.parallel(limit))
        if not tokens:  # what needs none does not wait for them
            return worst
        bucket = self.tokens
        if bucket is not None and not bucket.has(tokens, now_ns):
            if tokens > bucket.limit:
                return wording.too_large(bucket.limit, tokens, smaller)
            left, wait_ns = bucket.remaining(now_ns), bucket.wait_ns(tokens, now_ns)
            worst = _worse(worst, wording.tokens(bucket.limit, tokens, left, wait_ns))
        terms = self.terms
        if terms.tokens_per_day is None and terms.tokens_per_month is None:
            return worst
        return self._overspent(worst)

    def no_request_left(self, now_ns: int) -> Refusal | None:
        """Why no request at all may be made now."""
        bucket = self.requests
        if bucket is None or bucket.has(1, now_ns):
            return None
        return wording.requests(bucket.limit, bucket.wait_ns(1, now_ns))

    def hold(self, tokens: int) -> tuple[int, int]:
        """Hold so many tokens, or what is left, of the day's and the month's budget; how many those are."""
        if not tokens:
            return 0, 0
        day, month = self.terms.tokens_per_day, self.terms.tokens_per_month
        return (
            0 if day is None else self.day.hold(day, tokens),
            0 if month is None else self.month.hold(month, tokens),
        )

    def spend(self, tokens: int) -> None:
        """A call has ended that used so many."""
        today, this_month = self.clocks.windows()
        self.day.spend(tokens, today)
        self.month.spend(tokens, this_month)

    def used_ratios(self, today: int, this_month: int) -> Iterator[tuple[str, float]]:
        """The name of each budget that the key has, and what is spent of it; above 1 after an overshoot."""
        terms = self.terms
        if terms.tokens_per_day is not None:
            yield "tokens_per_day", self.day.spent(today) / terms.tokens_per_day
        if terms.tokens_per_month is not None:
            yield "tokens_per_month", self.month.spent(this_month) / terms.tokens_per_month

    def _overspent(self, worst: Refusal | None) -> Refusal | None:
        clocks = self.clocks
        today, this_month = clocks.windows()
        day, month = self.terms.tokens_per_day, self.terms.tokens_per_month
        if month is not None and self.month.left(month, this_month) <= 0:
            reason = _none_left("tokens_per_month", month, self.month, clocks.month, clocks.now())
            worst = _worse(worst, reason)
        if day is not None and self.day.left(day, today) <= 0:
            worst = _worse(worst, _none_left("tokens_per_day", day, self.day, clocks.day, clocks.now()))
        return worst


def _none_left(name: str, limit: int, budget: Budget, window: Window, now: float) -> Refusal:
    if budget.spent(window.number) >= limit:
        return wording.spent(name, limit, window, now)
    return wording.held(name, limit)


def _changed(bucket: Bucket | None, limit: int | None, now_ns: int) -> Bucket | None:
    if limit is None:
        return None
    if bucket is None:
        return Bucket(limit, now_ns)
    if bucket.limit != limit:
        bucket.change(limit, now_ns)
    return bucket


def _worse(one: Refusal | None, other: Refusal) -> Refusal:
    return one if one is not None and one.seconds >= other.seconds else other
