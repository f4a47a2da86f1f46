"""The limiter does what a plain model of it does, whatever comes in whatever order, and nothing leaks."""

import random
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.errors import GatewayError, InsufficientQuota, RateLimitExceeded
from gateway.limits import Reservation
from tests.limits import model
from tests.limits.worlds import NO_DEFAULT, SECOND_NS, World, key

NAMES = ("one", "two")
HOUR_NS = 3600 * SECOND_NS
ROUNDING = Fraction(1, 10**6)  # seconds; far above what shares of a changed limit are rounded by

limits_of_a_key = st.fixed_dictionaries(
    {"tpm": st.sampled_from([60, 97])},
    optional={
        "rpm": st.sampled_from([1, 6]),
        "max_parallel": st.sampled_from([1, 3]),
        "tokens_per_day": st.sampled_from([1, 150]),
        "tokens_per_month": st.sampled_from([200, 2**53 - 1]),
    },
)
amounts = st.one_of(st.integers(0, 30), st.integers(0, 30), st.sampled_from([0, 60, 97, 10**9]))
spans = st.sampled_from(
    [1, 3, SECOND_NS // 7, SECOND_NS, 5 * SECOND_NS, 20 * SECOND_NS, HOUR_NS, 13 * HOUR_NS]
)
picks = st.integers(0, 10**6)


class Machine(RuleBasedStateMachine):
    """Three keys; calls of theirs come, are settled, given back and closed in any order and repeatedly."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.keys = {name: key(name) for name in NAMES}
        self.model = {name: model.Key({}) for name in NAMES}
        self.calls: list[tuple[Reservation, model.Call]] = []

    @initialize(first=limits_of_a_key, second=limits_of_a_key)
    def begin(self, first: Mapping[str, int], second: Mapping[str, int]) -> None:
        """Keys have limits."""
        for name, limits in zip(NAMES, (first, second), strict=True):
            self.change(name, limits)

    @rule(name=st.sampled_from(NAMES), limits=limits_of_a_key, none=st.sampled_from([False, False, True]))
    def change_some(self, name: str, limits: Mapping[str, int], *, none: bool) -> None:
        """Other limits hold from the next question on; or there is none of a kind any more."""
        self.change(name, {} if none else limits)

    def change(self, name: str, limits: Mapping[str, int]) -> None:
        """The same in the model."""
        self.keys[name] = key(name, **limits)
        self.model[name].change(dict(limits), self.world.ticks_ns)
        self.world.limits.headers(self.keys[name], NO_DEFAULT)

    @rule(span=spans)
    def wait(self, span: int) -> None:
        """Time passes."""
        self.world.wait(nanoseconds=span)

    @rule(name=st.sampled_from(NAMES), tokens=amounts)
    def reserve(self, name: str, tokens: int) -> None:
        """It is let in or refused as the model would, for the same reason and the same time."""
        waits = self.waits(name, tokens)
        try:
            reservation = self.world.reserve(self.keys[name], tokens)
        except (RateLimitExceeded, InsufficientQuota) as error:
            self.is_right(error, waits)
        else:
            assert all(wait < ROUNDING for wait in waits.values())
            call = self.model[name].reserve(tokens, self.world.ticks_ns, self.world.now)
            self.calls.append((reservation, call))

    @rule(name=st.sampled_from(NAMES), tokens=st.integers(0, 60))
    def wait_as_told(self, name: str, tokens: int) -> None:
        """With no call running: a second earlier than told it is refused, then it is let in."""
        for reservation, call in self.calls:
            if call.key is self.model[name]:
                reservation.settle(call.tokens)
                self.settle_model(call, 1, call.tokens)
                self.end(reservation, call)
        waits = self.waits(name, tokens)
        longest = max(waits.values(), default=inf)
        if longest <= 120 or (longest < inf and waits.get("tpm", 0) < longest):
            reservation = self.world.pass_exactly_as_told(self.keys[name], tokens)
            call = self.model[name].reserve(tokens, self.world.ticks_ns, self.world.now)
            self.calls.append((reservation, call))

    @rule(name=st.sampled_from(NAMES))
    def spend_request(self, name: str) -> None:
        """A call that is refused for what it says takes a request, or is refused for its rate."""
        rate = self.model[name].rates.get("rpm")
        wait = Fraction(0) if rate is None else rate.wait(1, self.world.ticks_ns) / SECOND_NS
        try:
            self.world.spend_request(self.keys[name])
        except RateLimitExceeded as error:
            self.is_right(error, {"rpm": wait})
        else:
            assert wait < ROUNDING
            model.take(rate, 1, self.world.ticks_ns)

    @precondition(lambda self: self.calls)
    @rule(pick=picks, used=amounts)
    def settle(self, pick: int, used: int) -> None:
        """It has used more or less than it reserved."""
        reservation, call = self.pick(pick)
        reservation.settle(used)
        self.settle_model(call, 1, used)

    @precondition(lambda self: self.calls)
    @rule(pick=picks, request=st.booleans())
    def refund(self, pick: int, *, request: bool) -> None:
        """It has used nothing."""
        reservation, call = self.pick(pick)
        reservation.refund(request=request)
        self.settle_model(call, 0 if request else 1, 0)

    @precondition(lambda self: self.calls)
    @rule(pick=picks)
    def close(self, pick: int) -> None:
        """It is over."""
        self.end(*self.pick(pick))

    @rule(seed=picks)
    def crowd(self, seed: int) -> None:
        """Much happens, each step likely to meet what the one before has left."""
        chance = random.Random(seed)  # noqa: S311  for variety, not for secrecy
        for _ in range(20):
            what, pick = chance.choices("rrrrssgcww")[0], chance.randint(0, 99)
            if what == "r":
                self.reserve(chance.choice(NAMES), chance.choice([0, 1, 5, 20, 40]))
            elif what == "w":
                self.wait(chance.choice([SECOND_NS, 5 * SECOND_NS, 20 * SECOND_NS]))
            elif self.calls and what == "s":
                self.settle(pick, chance.randint(0, 40))
            elif self.calls and what == "g":
                self.refund(pick, request=pick % 2 == 0)
            elif self.calls:
                self.close(pick)
            self.nothing_is_lost()

    @invariant()
    def nothing_is_lost(self) -> None:
        """Slots, reserved tokens and what headers tell are those of the model."""
        limits, calls = self.world.limits, [call for _, call in self.calls]
        assert limits.open_slots() == sum(call.is_open for call in calls)
        assert limits.reserved_tokens() == sum(call.tokens for call in calls if not call.settled)
        for name in NAMES:
            self.headers_are_right(self.world.headers(self.keys[name]), self.model[name])

    def teardown(self) -> None:
        """At rest all is given back, and no window of time saw more than its limit."""
        for reservation, call in self.calls:
            self.end(reservation, call)
            assert self.world.limits.open_slots() >= 0
        assert (self.world.limits.open_slots(), self.world.limits.reserved_tokens()) == (0, 0)
        for of in self.model.values():
            self.no_window_saw_more(of)

    def no_window_saw_more(self, of: model.Key) -> None:
        """In any T seconds at most limit + limit·T/60 of what is reserved passes, less what is given back."""
        for kind, (name, rate) in enumerate([(name, of.rates.get(name)) for name in ("rpm", "tpm")]):
            if rate is None or rate.was_changed:
                continue
            takings = [(call, call.takings[kind]) for call in of.calls]
            mine = [call for call, taking in takings if taking is not None and taking.rate is rate]
            passed = [(call.began, min(call.counted[kind], (1, call.tokens)[kind])) for call in mine]
            for first, (began, _) in enumerate(passed):
                total = 0
                for at, amount in passed[first:]:
                    total += amount
                    assert total <= rate.limit + Fraction(rate.limit * (at - began), model.MINUTE), name

    def waits(self, name: str, tokens: int) -> dict[str, Fraction | float]:
        """The limits in a call's way."""
        return self.model[name].waits(tokens, self.world.ticks_ns, self.world.now)

    def is_right(self, error: GatewayError, waits: Mapping[str, Fraction | float]) -> None:
        """The limit that stands in the way the longest is named, with that time."""
        longest = max(waits.values())
        named = [name for name in waits if f"({name})" in error.message]
        assert any(waits[name] == longest or waits[name] > longest - 1 for name in named), (named, waits)
        if longest == inf:
            assert (error.retry_after, error.should_retry) == (None, False)
            return
        most = 10**9 if isinstance(error, InsufficientQuota) else 120
        allowed = {max(1, min(most, ceil(longest + blur))) for blur in (0, ROUNDING, -ROUNDING)}
        assert error.retry_after in allowed

    def headers_are_right(self, headers: Mapping[str, str], of: model.Key) -> None:
        """Those of the limits that the key has; what remains is rounded down, less a call that runs."""
        kinds = {"rpm": "requests", "tpm": "tokens"}
        assert {name.split("-")[-1] for name in headers} == {kinds[name] for name in of.rates}
        for name, rate in of.rates.items():
            there = rate.limit - rate.missing(self.world.ticks_ns)
            if name == "rpm" and of.running() and there > rate.limit - 1:
                there = Fraction(rate.limit - 1)
            allowed = {max(0, floor(there + blur)) for blur in (0, ROUNDING if rate.was_changed else 0)}
            assert int(headers[f"limit-{kinds[name]}"]) == rate.limit
            assert int(headers[f"remaining-{kinds[name]}"]) in allowed | {
                max(0, floor(there - ROUNDING)) if rate.was_changed else max(0, floor(there))
            }

    def pick(self, pick: int) -> tuple[Reservation, model.Call]:
        """One of the last calls, open or not."""
        return self.calls[-1 - pick % min(len(self.calls), 8)]

    def settle_model(self, call: model.Call, requests: int, tokens: int) -> None:
        """The same in the model."""
        call.key.settle(call, requests, tokens, self.world.ticks_ns, self.world.now)

    def end(self, reservation: Reservation, call: model.Call) -> None:
        """Close a call in both."""
        reservation.close()
        self.settle_model(call, 0, 0)
        call.is_open = False


Machine.TestCase.settings = settings(max_examples=150, stateful_step_count=25)
TestMachine = Machine.TestCase
