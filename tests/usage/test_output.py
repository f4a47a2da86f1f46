"""What is reserved for an output: the cap, or what this key and model have generated of late."""

from math import ceil
from typing import Any

import pytest

from gateway.routes import BY_TEMPLATE
from gateway.usage import output
from gateway.usage.output import Output

CHAT, TEXT = BY_TEMPLATE["/v1/chat/completions"], BY_TEMPLATE["/v1/completions"]


def seen(*tokens: int) -> Output:
    """After these completions."""
    known = Output()
    for number in tokens:
        known.learn(number)
    return known


def test_the_first_twenty_calls_reserve_1024_tokens_or_their_cap() -> None:
    """Nothing is known of them yet."""
    assert Output().tokens(None) == seen(*[5] * 19).tokens(None) == 1024
    assert seen(*[5] * 19).tokens(16) == 16
    assert seen(*[9000] * 19).tokens(4000) == 1024


def test_later_ones_reserve_what_19_of_20_calls_stay_under() -> None:
    """At least 256, since the next call may be the long one, and never more than the cap."""
    assert seen(*[5] * 20).tokens(None) == 256
    assert seen(*range(1001, 1101)).tokens(None) == 1095
    assert seen(*range(1001, 1101)).tokens(300) == 300


def test_it_follows_at_once() -> None:
    """The call after long answers reserves for them, not the twentieth."""
    for count in range(20, 450):
        tokens = [300 + 7919 * number % 5000 for number in range(count)]
        assert seen(*tokens).percentile_95 == sorted(tokens[-200:])[ceil(0.95 * min(count, 200)) - 1]


def test_only_the_last_200_completions_count() -> None:
    """A key that changes its ways is estimated anew."""
    assert seen(*[5000] * 200).tokens(None) == 5000
    assert seen(*[5000] * 200, *[300] * 200).tokens(None) == 300
    assert seen(*[5000] * 300, *[300] * 150).tokens(None) == 5000


@pytest.mark.parametrize("told", [-1, 0, 2**40])
def test_whatever_an_engine_tells_is_taken(told: int) -> None:
    """A number that nobody can have generated breaks nothing."""
    assert seen(*[told] * 20).tokens(None) in (256, 2**32 - 1)


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ({}, None),
        ({"max_tokens": None}, None),
        ({"max_tokens": 16}, 16),
        ({"max_tokens": 16.0}, 16),
        ({"max_tokens": 16, "max_completion_tokens": 8}, 16),
        ({"max_tokens": 8, "max_completion_tokens": 16}, 16),
        ({"max_tokens": 8, "max_completion_tokens": None}, 8),
        ({"max_tokens": True}, None),
        ({"max_tokens": "16"}, None),
        ({"max_tokens": -5}, 0),
        ({"max_tokens": [16]}, None),
        ({"max_output_tokens": 16}, None),
    ],
)
def test_the_cap_is_the_highest_that_the_body_sets(body: dict[str, Any], most: int | None) -> None:
    """Of the fields of its own route, since engines differ in which they obey; others cap nothing."""
    assert output.cap(body, CHAT) == most


def test_no_tokens_beside_an_echo_are_none() -> None:
    """A completion may ask for its prompt alone."""
    assert output.cap({"max_tokens": 0, "echo": True}, TEXT) == 0
    assert Output().tokens(0) == 0
