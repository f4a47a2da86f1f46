"""The line on energy can be checked with a pocket calculator."""

import pytest

from gateway.cli.energy import told
from gateway.store import Energy


@pytest.mark.parametrize(
    ("joules", "tokens", "expected"),
    [
        (
            6_624_000.0,
            2_136_774,
            "Energy: 1.84 kWh by the GPUs of this box in these hours, idle or not: "
            "3.1 J per token (prompt and completion).",
        ),
        (
            9000.0,
            45_000,
            "Energy: 2.5 Wh by the GPUs of this box in these hours, idle or not: "
            "0.2 J per token (prompt and completion).",
        ),
        (9000.0, 0, "Energy: 2.5 Wh by the GPUs of this box in these hours, idle or not; no tokens."),
    ],
    ids=["a week", "an hour", "an idle hour"],
)
def test_energy_is_told_in_one_line(joules: float, tokens: int, expected: str) -> None:
    """Of the box, in the unit of the electricity bill, and for each token."""
    assert told(Energy(joules, tokens)) == expected
