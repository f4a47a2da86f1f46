"""How many tokens a call may generate: by its cap, and by what this key and model have generated of late."""

from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any

from gateway.routes import Route

SAMPLES = 200
FIRST_CALLS = 20
FIRST_TOKENS = 1024
FEWEST_TOKENS = 256
_MOST_TOKENS = 2**32 - 1


class Output:
    """The last completions of one key and model, each in tokens of one choice."""

    __slots__ = ("_calls", "_ordered", "_tokens")

    def __init__(self) -> None:
        self._tokens = array("I")
        self._ordered = array("I")
        self._calls = 0

    def tokens(self, cap: int | None) -> int:
        """What to reserve for one choice, of which a cap allows so many (None: any number)."""
        expected = FIRST_TOKENS if self._calls < FIRST_CALLS else max(FEWEST_TOKENS, self.percentile_95)
        return expected if cap is None else min(cap, expected)

    @property
    def percentile_95(self) -> int:
        """The least of the completions that 95 in 100 of them do not exceed (the nearest rank)."""
        return self._ordered[-(-19 * len(self._ordered) // 20) - 1]

    def learn(self, tokens: int) -> None:
        """One choice of a call that has ended."""
        tokens = max(0, min(_MOST_TOKENS, tokens))
        if len(self._tokens) < SAMPLES:
            self._tokens.append(tokens)
        else:
            oldest = self._calls % SAMPLES
            del self._ordered[bisect_left(self._ordered, self._tokens[oldest])]
            self._tokens[oldest] = tokens
        insort(self._ordered, tokens)
        self._calls += 1


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
