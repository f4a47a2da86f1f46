"""What a caller is told who has reached a limit: which one, its value, and how long to wait."""

from datetime import datetime
from math import ceil
from typing import NamedTuple

from gateway.errors import GatewayError, InsufficientQuota, RateLimitExceeded
from gateway.limits.window import Window

SECOND_NS = 1_000_000_000
LONGEST_RETRY_SECONDS = 120  # SDKs give up beyond
RUNNING_RETRY_SECONDS = 1  # nobody knows when a running call ends
NEVER = float("inf")

_PERIODS = {"tokens_per_day": "a day", "tokens_per_month": "a month"}


class Refusal(NamedTuple):
    """Why a call is not let in: the limit, how long it stands in the way, and the error that says so."""

    limit: str
    seconds: float
    error: GatewayError


def requests(rpm: int, wait_ns: int) -> Refusal:
    """No request is left."""
    seconds = -(-wait_ns // SECOND_NS)
    return _wait(
        "rpm", seconds, f"Your key may make {_many(rpm, 'request')} a minute (rpm), and they are used up."
    )


def tokens(tpm: int, asked: int, left: int, wait_ns: int) -> Refusal:
    """Too few tokens are left for this call."""
    seconds = -(-wait_ns // SECOND_NS)
    return _wait(
        "tpm",
        seconds,
        f"Your key may use {_many(tpm, 'token')} a minute (tpm). This call may need {asked}, prompt and "
        f"answer together, and {left} are left.",
    )


def too_large(tpm: int, asked: int, smaller: str) -> Refusal:
    """A call that would find too few tokens in a full minute, too; `smaller`: what its caller can do."""
    message = (
        f"This call may need {_many(asked, 'token')}, prompt and answer together: more than the {tpm} that "
        f"your key may use in a whole minute (tpm), so waiting does not help. {smaller}"
    )
    return Refusal("tpm", NEVER, RateLimitExceeded(message, should_retry=False))


def parallel(limit: int) -> Refusal:
    """All slots are taken."""
    message = (
        f"Your key may have {_many(limit, 'call')} running at once (max_parallel), and as many are. "
        "Wait until one has ended."
    )
    return _running("max_parallel", message)


def held(name: str, limit: int) -> Refusal:
    """A budget is not spent, but running calls hold what is left of it."""
    message = (
        f"Your key may use {_many(limit, 'token')} {_PERIODS[name]} ({name}), and what your running calls "
        "have reserved is all that is left. Wait until one has ended."
    )
    return _running(name, message)


def spent(name: str, limit: int, window: Window, now: float) -> Refusal:
    """A budget is spent until its window ends."""
    ends = datetime.fromtimestamp(window.ends_at, window.zone)
    name_of_zone = str(window.zone)
    zone = name_of_zone if ends.tzname() == name_of_zone else f"{ends.tzname()}, {name_of_zone}"
    seconds = max(1, ceil(window.ends_at - now))
    message = (
        f"Your key may use {_many(limit, 'token')} {_PERIODS[name]} ({name}), and they are spent. They "
        f"renew at {ends:%Y-%m-%d %H:%M} ({zone}). Until then, ask the operator of this gateway for more."
    )
    return Refusal(name, seconds, InsufficientQuota(message, retry_after=seconds, should_retry=False))


def _wait(limit: str, seconds: int, reason: str) -> Refusal:
    message = f"{reason} Try again in {_many(seconds, 'second')}."
    error = RateLimitExceeded(message, retry_after=min(seconds, LONGEST_RETRY_SECONDS))
    return Refusal(limit, seconds, error)


def _running(limit: str, message: str) -> Refusal:
    error = RateLimitExceeded(message, retry_after=RUNNING_RETRY_SECONDS)
    return Refusal(limit, RUNNING_RETRY_SECONDS, error)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
