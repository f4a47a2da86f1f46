"""Prometheus' text format as values that judges can ask."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from prometheus_client.parser import text_string_to_metric_families

MOST_OF_LINE = 8_192  # the parser takes time by its square; vLLM's longest have some 2,000
Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Exposition:
    """What a `/metrics` answered. Counters have their `_total`, histograms `_sum` and `_count`."""

    text: str

    @cached_property
    def _samples(self) -> Mapping[str, list[Sample]]:
        found: dict[str, list[Sample]] = {}
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                if math.isfinite(value := float(sample.value)):  # a counter that is none has nothing to say
                    found.setdefault(sample.name, []).append((sample.labels, value))
        return found

    def has(self, name: str) -> bool:
        """Whether there is a series of this name."""
        return name in self._samples

    def samples(self, name: str, **labels: str) -> list[Sample]:
        """The series of a name that carry these labels."""
        return [
            sample
            for sample in self._samples.get(name, [])
            if all(sample[0].get(label) == wanted for label, wanted in labels.items())
        ]

    def sum(self, name: str, **labels: str) -> float:
        """The sum of those; 0.0 if there is none."""
        return sum(value for _, value in self.samples(name, **labels))

    def highest(self, name: str) -> float:
        """The largest of the series of a name; 0.0 if there is none."""
        return max((value for _, value in self.samples(name)), default=0.0)

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Those sums for each value of a label."""
        found: dict[str, float] = {}
        for carried, value in self.samples(name, **labels):
            key = carried.get(label, "")
            found[key] = found.get(key, 0.0) + value
        return found

    def mean(self, name: str) -> float | None:
        """The mean of what a histogram has seen; None if it has seen nothing."""
        count = self.sum(f"{name}_count")
        return self.sum(f"{name}_sum") / count if count else None

    def info(self, name: str, label: str) -> str:
        """A label of a series that only has labels; empty if there is none."""
        return next((carried.get(label, "") for carried, _ in self.samples(name)), "")


def parsed(text: str) -> Exposition:
    """The exposition. Raises ValueError if it is none."""
    if any(len(line) > MOST_OF_LINE for line in text.split("\n")):
        raise ValueError(f"a line of more than {MOST_OF_LINE} characters")
    found = Exposition(text)
    try:
        found.has("")
    except (IndexError, KeyError, TypeError, AttributeError) as error:  # the parser's own, on broken lines
        raise ValueError(text[:80]) from error
    return found
