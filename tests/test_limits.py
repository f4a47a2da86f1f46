"""Slots of a key: given in one step up to its limit, given back exactly once."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RateLimitExceeded
from gateway.keys import Key
from gateway.keys.key import UNLIMITED, Limit
from gateway.limits import Lease, Limits
from gateway.metrics import Metrics
from gateway.settings.sections import DefaultLimits
from tests.policy import calls

NO_DEFAULT = DefaultLimits()
MANY = 50


def key(max_parallel: Limit, key_id: str = "a-key") -> Key:
    """A key with this limit."""
    return dataclasses.replace(calls.key(), id=key_id, max_parallel=max_parallel)


def limited(metrics: Metrics, key_id: str = "a-key") -> float | None:
    """How many calls of a key were refused."""
    labels = {"key": key_id, "limit": "max_parallel"}
    return metrics.registry.get_sample_value("gateway_limited_total", labels)


@pytest.mark.parametrize(
    ("own", "default", "most"),
    [(2, None, 2), (None, 3, 3), (2, 9, 2), (9, 2, 9), (UNLIMITED, 2, MANY), (None, None, MANY)],
)
def test_a_keys_own_limit_counts_before_the_default(own: Limit, default: int | None, most: int) -> None:
    """Unset: the default; "unlimited": not even that."""
    limits = Limits(Metrics())
    given_out = []
    try:
        for _ in range(MANY):
            given_out.append(limits.reserve(key(own), DefaultLimits(max_parallel=default)))  # noqa: PERF401
    except RateLimitExceeded:
        pass
    assert len(given_out) == limits.open_slots() == most


def test_a_refusal_says_what_and_when_and_is_counted() -> None:
    """It takes no slot itself, so the next one that ends makes room for the next that comes."""
    metrics = Metrics()
    limits = Limits(metrics)
    lease = limits.reserve(key(1), NO_DEFAULT)
    for refusals in (1, 2):
        with pytest.raises(RateLimitExceeded) as refused:
            limits.reserve(key(1), NO_DEFAULT)
        assert limited(metrics) == refusals
    assert (refused.value.status, refused.value.retry_after, refused.value.should_retry) == (429, 1, None)
    assert "1 call running" in refused.value.message
    lease.release()
    limits.reserve(key(1), NO_DEFAULT)


def test_keys_do_not_count_for_each_other() -> None:
    """One at its limit leaves the others theirs."""
    limits = Limits(Metrics())
    limits.reserve(key(1, "one"), NO_DEFAULT)
    limits.reserve(key(1, "two"), NO_DEFAULT)
    with pytest.raises(RateLimitExceeded):
        limits.reserve(key(1, "one"), NO_DEFAULT)


def test_a_limit_that_was_lowered_lets_running_calls_end() -> None:
    """New ones wait until as many are left as it allows now."""
    limits = Limits(Metrics())
    leases = [limits.reserve(key(5), NO_DEFAULT) for _ in range(5)]
    for lease in leases[:4]:
        with pytest.raises(RateLimitExceeded):
            limits.reserve(key(1), NO_DEFAULT)
        lease.release()
    with pytest.raises(RateLimitExceeded):
        limits.reserve(key(1), NO_DEFAULT)
    leases[4].release()
    limits.reserve(key(1), NO_DEFAULT)


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.integers(0, 9)), max_size=200))
def test_whatever_the_order_slots_add_up_and_none_is_left_at_rest(steps: list[tuple[str, int]]) -> None:
    """Given back twice counts once; a key never has more than its limit."""
    limits = Limits(Metrics())
    held: dict[str, list[Lease]] = {"one": [], "two": []}
    for key_id, choice in steps:
        leases = held[key_id]
        if choice < 6:
            try:
                leases.append(limits.reserve(key(3, key_id), NO_DEFAULT))
            except RateLimitExceeded:
                assert len(leases) == 3
        elif leases:
            ended = leases.pop(choice % len(leases))
            ended.release()
            ended.release()
        assert limits.open_slots() == len(held["one"]) + len(held["two"])
        assert len(leases) <= 3
    for lease in held["one"] + held["two"]:
        lease.release()
    assert limits.open_slots() == 0
