"""A limiter whose clocks stand until a test moves them, and keys for it."""

import dataclasses
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, TypeVar

from gateway.errors import GatewayError, InsufficientQuota, RateLimitExceeded
from gateway.keys import Key
from gateway.keys.key import Limit
from gateway.limits import Clocks, Limits, Reservation
from gateway.metrics import Metrics
from gateway.settings.sections import DefaultLimits
from tests.policy import calls

SECOND_NS = 10**9
NOON = datetime.fromisoformat("2026-03-27T12:00:00+00:00").timestamp()
NO_DEFAULT = DefaultLimits()

_Answer = TypeVar("_Answer")


def at_once(work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """What a coroutine answers; that it waits for nothing is what makes a decision one step."""
    try:
        work.send(None)
    except StopIteration as ended:
        answer: _Answer = ended.value
        return answer
    raise AssertionError("the limiter has waited for something")


def key(key_id: str = "a-key", /, **limits: Limit) -> Key:
    """A key with these limits and no other."""
    return dataclasses.replace(calls.key(), id=key_id, **limits)  # type: ignore[arg-type]


class World:
    """A limiter, its metrics, and its two clocks."""

    def __init__(self, now: float = NOON) -> None:
        self.ticks_ns = 7 * SECOND_NS
        self.now = now
        self.metrics = Metrics()
        self.clocks = Clocks(ticks_ns=lambda: self.ticks_ns, now=lambda: self.now)
        self.limits = Limits(self.metrics, self.clocks)

    def wait(self, seconds: float = 0, *, nanoseconds: int = 0) -> None:
        """So much time passes on both clocks."""
        nanoseconds += round(seconds * SECOND_NS)
        self.ticks_ns += nanoseconds
        self.now += nanoseconds / SECOND_NS

    def reserve(self, by: Key, tokens: int = 0, defaults: DefaultLimits = NO_DEFAULT) -> Reservation:
        """What one call takes. Raises what its caller would see."""
        return at_once(self.limits.reserve(by, defaults, tokens))

    def spend_request(self, by: Key, defaults: DefaultLimits = NO_DEFAULT) -> None:
        """A call that is refused for what it says."""
        at_once(self.limits.spend_request(by, defaults))

    def refused(self, by: Key, tokens: int = 0, defaults: DefaultLimits = NO_DEFAULT) -> GatewayError:
        """The error of a call that must be refused."""
        try:
            self.reserve(by, tokens, defaults)
        except (RateLimitExceeded, InsufficientQuota) as error:
            return error
        raise AssertionError("the call was let in")

    def pass_exactly_as_told(self, by: Key, tokens: int = 0) -> Reservation:
        """A call is refused now, and a second before what it is told, and let in then."""
        seconds = self.refused(by, tokens).retry_after
        assert seconds is not None
        assert seconds >= 1
        self.wait(seconds - 1)
        assert self.refused(by, tokens).retry_after == 1
        self.wait(1)
        return self.reserve(by, tokens)

    def headers(self, by: Key, defaults: DefaultLimits = NO_DEFAULT) -> dict[str, str]:
        """The headers by what follows `x-ratelimit-`."""
        found = self.limits.headers(by, defaults)
        return {name.decode().removeprefix("x-ratelimit-"): value.decode() for name, value in found}

    def limited(self, limit: str, key_id: str = "a-key") -> float | None:
        """How many calls of a key were refused by this limit."""
        labels = {"key": key_id, "limit": limit}
        return self.metrics.registry.get_sample_value("gateway_limited_total", labels)

    def used_ratio(self, limit: str, key_id: str = "a-key") -> float | None:
        """What a scrape tells of a budget."""
        labels = {"key": key_id, "limit": limit}
        return self.metrics.registry.get_sample_value("gateway_budget_used_ratio", labels)
