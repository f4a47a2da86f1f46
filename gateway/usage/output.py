"""How many tokens a call may generate: by its cap, and by what this key and model have generated of late."""

import math
from array import array
from collections.abc import Mapping
from typing import Any

from gateway.routes import Route

SAMPLES = 200
FIRST_CALLS = 20
FIRST_TOKENS = 1024
FEWEST_TOKENS = 256
_SORT_EVERY = 20  # the percentile of 200 moves slowly, and sorting them costs some microseconds
_MOST_TOKENS = 2**32 - 1


class Output:
    """The last completions of one key and model, each in tokens of one choice."""

    __slots__ = ("_calls", "_percentile", "_tokens")

    def __init__(self) -> None:
        self._tokens = array("I")
        self._calls = 0
        self._percentile = 0

    def tokens(self, cap: int | None) -> int:
        """What to reserve for one choice, of which a cap allows so many (None: any number)."""
        expected = FIRST_TOKENS if self._calls < FIRST_CALLS else max(FEWEST_TOKENS, self._percentile)
        return expected if cap is None else min(cap, expected)

    def learn(self, tokens: int) -> None:
        """One choice of a call that finished."""
        tokens = max(0, min(_MOST_TOKENS, tokens))
        if len(self._tokens) < SAMPLES:
            self._tokens.append(tokens)
        else:
            self._tokens[self._calls % SAMPLES] = tokens
        self._calls += 1
        if self._calls % _SORT_EVERY == 0:
            self._percentile = percentile_95(self._tokens)


def percentile_95(values: "array[int]") -> int:
    """The least of the values that 95 in 100 of them do not exceed (the nearest rank)."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def cap(body: Mapping[str, Any], route: Route) -> int | None:
    """The most tokens of one choice that a body allows; None: any number.

    By the highest of its caps: vLLM obeys `max_completion_tokens` alone where both are given, others may not.
    """
    highest = None
    for field in route.output_caps:
        value = body.get(field)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and (highest is None or value > highest):
            highest = value
    return highest if highest is None else max(0, highest)
