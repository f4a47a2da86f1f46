"""Sizes, rates and shares as operators type them."""

import pytest

from gateway.planner import units
from gateway.planner.problem import PlanProblem

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GiB", 24 * GIB),
        ("121.7GiB", int(121.7 * GIB)),
        ("36 GB", 36 * 10**9),
        ("1024", 1024),
        ("5mib", 5 * 2**20),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    """Binary and decimal units are kept apart: 7 % lie between GB and GiB."""
    assert units.size_bytes(text, "--memory") == expected


@pytest.mark.parametrize(
    "text", ["9" * 400, "0.1", "0.0001KiB", "24Gb", "24Gib", "1e9", "-1GiB", "9999999TB"]
)
def test_no_size(text: str) -> None:
    """More than Python can count, less than a byte, and bits are told of as what is no size."""
    with pytest.raises(PlanProblem, match=r"--memory .* is no size.*: write it as in --memory 24GiB"):
        units.size_bytes(text, "--memory")


@pytest.mark.parametrize("text", ["936Gb/s", "936Gb", "936 Mb/s", "9" * 400, "0.1", "936GB/h"])
def test_no_rate(text: str) -> None:
    """A rate in bits would be taken for eight times as much."""
    with pytest.raises(PlanProblem, match=r"--bandwidth .* is no rate.*: write it as in --bandwidth 273GB/s"):
        units.rate_bytes(text, "--bandwidth")
    assert units.rate_bytes("936gb/s", "--bandwidth") == units.rate_bytes("936GB/s", "--bandwidth") == 936e9


def test_bits_are_named() -> None:
    """What is wrong with Gb is not seen at a glance."""
    with pytest.raises(PlanProblem, match="a b is a bit"):
        units.rate_bytes("936Gb/s", "--bandwidth")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.9, "0.90"), (0.925, "0.925"), (0.999, "0.999"), (1.0, "1.00"), (0.00001, "0.00001")],
)
def test_a_share_is_written_as_given(value: float, text: str) -> None:
    """A rounded one is another cache; with two places at least, as in the shipped profiles."""
    assert units.share(value) == text
