"""The six headers, and durations as Go writes them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits.bucket import Bucket
from gateway.limits.headers import duration, of
from tests.limits.worlds import SECOND_NS

UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"), (1, "1ms"), (12, "12ms"), (999, "999ms"), (1000, "1s"), (1500, "1.5s"), (1010, "1.01s"),
        (1001, "1.001s"), (59_999, "59.999s"), (60_000, "1m0s"), (60_500, "1m0.5s"), (360_000, "6m0s"),
        (3_599_999, "59m59.999s"), (3_600_000, "1h0m0s"), (3_661_020, "1h1m1.02s"), (90_000_000, "25h0m0s"),
    ],
)  # fmt: skip
def test_durations_are_written_as_go_writes_them(milliseconds: int, text: str) -> None:
    """What `time.Duration(ms * 1e6).String()` prints."""
    assert duration(milliseconds) == text


@given(st.integers(0, 10**10))
def test_a_duration_says_exactly_what_it_was_given(milliseconds: int) -> None:
    """Read back by whoever knows the units."""
    parts = re.findall(r"([\d.]+)(ms|h|m|s)", duration(milliseconds))
    assert "".join(number + unit for number, unit in parts) == duration(milliseconds)
    assert round(sum(float(number) * UNITS[unit] for number, unit in parts), 3) == milliseconds


def shown(bucket: Bucket, now_ns: int) -> list[bytes]:
    """Limit, remaining and reset."""
    return [value for _, value in of(None, bucket, now_ns, runs=True)]


def test_remaining_is_rounded_down_and_reset_up() -> None:
    """Whoever believes them is never refused for it."""
    bucket = Bucket(600, 0)
    bucket.spend(1, 0)
    assert shown(bucket, 1) == [b"600", b"599", b"100ms"]
    assert shown(bucket, SECOND_NS // 10 - 1) == [b"600", b"599", b"1ms"]
    assert shown(bucket, SECOND_NS // 10) == [b"600", b"600", b"0s"]


def test_nothing_remains_below_zero() -> None:
    """After an overshoot the reset alone tells of it."""
    bucket = Bucket(60, 0)
    bucket.spend(3720, 0)
    assert shown(bucket, 0) == [b"60", b"0", b"1h2m0s"]


def test_only_limits_that_there_are_have_headers() -> None:
    """Names as OpenAI's API has them."""
    bucket = Bucket(7, 0)
    assert of(None, None, 0, runs=False) == []
    both = of(bucket, bucket, 0, runs=False)
    assert [name for name, _ in both] == [
        b"x-ratelimit-limit-requests", b"x-ratelimit-remaining-requests", b"x-ratelimit-reset-requests",
        b"x-ratelimit-limit-tokens", b"x-ratelimit-remaining-tokens", b"x-ratelimit-reset-tokens",
    ]  # fmt: skip
    assert of(bucket, None, 0, runs=False) == both[:3]
    assert of(None, bucket, 0, runs=False) == both[3:]


def test_a_running_call_is_never_told_as_remaining() -> None:
    """However slow its answer is: the first of 30 requests sees 29, though the bucket is full again."""
    requests, tokens = Bucket(30, 0), Bucket(30, 0)
    requests.spend(1, 0)
    told = [dict(of(requests, tokens, 5 * SECOND_NS, runs=runs)) for runs in (True, False)]
    assert [each[b"x-ratelimit-remaining-requests"] for each in told] == [b"29", b"30"]
    assert [each[b"x-ratelimit-remaining-tokens"] for each in told] == [b"30", b"30"]
