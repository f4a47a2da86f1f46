"""What limits are, written down as plainly as possible: histories that are read anew for each question.

Nothing is shared with the limiter but the rules: a bucket stands where it would stand if every call had
reserved just what it turned out to use, and what it used beyond its reserve is taken when it is settled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

MINUTE = 60 * 10**9  # in nanoseconds


@dataclass
class Event:
    """At this time so much was taken, or the limit became another."""

    at: int
    amount: Fraction = Fraction(0)
    limit: int | None = None


@dataclass
class Rate:
    """rpm or tpm of one key: everything that ever happened to it."""

    first_limit: int
    events: list[Event] = field(default_factory=list)

    @property
    def limit(self) -> int:
        """The one that holds now."""
        return next((e.limit for e in reversed(self.events) if e.limit is not None), self.first_limit)

    @property
    def was_changed(self) -> bool:
        """The limiter rounds the shares of a changed limit, to a part of 60·10⁹ of a token."""
        return any(event.limit is not None for event in self.events)

    def missing(self, now: int) -> Fraction:
        """What the bucket lacks."""
        missing, limit, at = Fraction(0), self.first_limit, 0
        for event in [*self.events, Event(now)]:
            missing = max(Fraction(0), missing - Fraction(limit * (event.at - at), MINUTE))
            at = event.at
            missing += event.amount
            if event.limit is not None:
                missing *= Fraction(event.limit, limit)
                limit = event.limit
        return missing

    def wait(self, amount: int, now: int) -> Fraction:
        """Nanoseconds until so much is there; 0 or less if it is now."""
        return (self.missing(now) + amount - self.limit) * MINUTE / self.limit


@dataclass
class Taking:
    """What one call took from a rate."""

    rate: Rate
    limit: int
    taken: int
    event: Event

    def settle(self, used: int, now: int) -> None:
        """It would have taken so much from the start; or takes the rest now."""
        self.event.amount = Fraction(min(used, self.taken))
        if used > self.taken:
            share = Fraction(self.rate.limit, self.limit)
            self.rate.events.append(Event(now, (used - self.taken) * share))


def take(rate: Rate | None, amount: int, now: int) -> Taking | None:
    """A call takes so much."""
    if rate is None:
        return None
    event = Event(now, Fraction(amount))
    rate.events.append(event)
    return Taking(rate, rate.limit, amount, event)


@dataclass
class Call:
    """One call that was let in."""

    key: "Key"
    tokens: int
    takings: tuple[Taking | None, Taking | None]
    held: dict[str, int]
    began: int
    settled: bool = False
    is_open: bool = True
    counted: tuple[int, int] = (0, 0)  # requests and tokens that it turned out to use


@dataclass(eq=False)
class Key:
    """One key."""

    limits: dict[str, int]
    rates: dict[str, Rate] = field(default_factory=dict)
    ended: list[tuple[float, int]] = field(default_factory=list)  # when, and tokens
    calls: list[Call] = field(default_factory=list)

    def change(self, limits: dict[str, int], now: int) -> None:
        """These are its limits now."""
        self.limits = limits
        for name in ("rpm", "tpm"):
            rate, limit = self.rates.get(name), limits.get(name)
            if limit is None:
                self.rates.pop(name, None)
            elif rate is None:
                self.rates[name] = Rate(limit, [])
            elif rate.limit != limit:
                rate.events.append(Event(now, limit=limit))

    def spent(self, name: str, wall: float) -> int:
        """Tokens of calls that ended in the running day or month, in UTC."""
        window = _window(name, wall)
        return sum(tokens for at, tokens in self.ended if _window(name, at) == window)

    def held(self, name: str) -> int:
        """What running calls hold of a budget."""
        return sum(call.held.get(name, 0) for call in self.calls if not call.settled)

    def running(self) -> int:
        """Calls that hold a slot."""
        return sum(call.is_open for call in self.calls)

    def reserve(self, tokens: int, now: int, wall: float) -> Call:
        """It was let in."""
        held = {
            name: max(0, min(tokens, limit - self.spent(name, wall) - self.held(name)))
            for name, limit in self.budgets()
        }
        rates = self.rates.get("rpm"), self.rates.get("tpm")
        takings = take(rates[0], 1, now), take(rates[1], tokens, now)
        call = Call(self, tokens, takings, held, now)
        self.calls.append(call)
        return call

    def settle(self, call: Call, requests: int, tokens: int, now: int, wall: float) -> None:
        """Only the first time counts."""
        if call.settled:
            return
        call.settled = True
        call.counted = requests, tokens
        for taking, used in zip(call.takings, (requests, tokens), strict=True):
            if taking is not None:
                taking.settle(used, now)
        self.ended.append((wall, tokens))

    def budgets(self) -> Iterator[tuple[str, int]]:
        """Those that it has."""
        for name in ("tokens_per_day", "tokens_per_month"):
            if name in self.limits:
                yield name, self.limits[name]

    def waits(self, tokens: int, now: int, wall: float) -> dict[str, Fraction | float]:
        """The limits that stand in a call's way, and for how many seconds; 1 where nobody knows."""
        waits: dict[str, Fraction | float] = {}
        for name, amount in (("rpm", 1), ("tpm", tokens)):
            rate = self.rates.get(name)
            if rate is not None and amount and (wait := rate.wait(amount, now)) > 0:
                waits[name] = float("inf") if amount > rate.limit else wait / 10**9
        if self.running() >= self.limits.get("max_parallel", 10**9):
            waits["max_parallel"] = 1.0
        for name, limit in self.budgets() if tokens else ():
            if self.spent(name, wall) >= limit:
                waits[name] = _ends(name, wall) - wall
            elif self.spent(name, wall) + self.held(name) >= limit:
                waits[name] = 1.0
        return waits


def _window(name: str, wall: float) -> str:
    return datetime.fromtimestamp(int(wall), UTC).strftime(
        "%Y-%m-%d" if name == "tokens_per_day" else "%Y-%m"
    )


def _ends(name: str, wall: float) -> float:
    """When another day or month begins, found by looking."""
    hour = wall - wall % 3600
    while _window(name, hour) == _window(name, wall):
        hour += 3600
    return hour
