"""Typed reading of a config.json: a field that is missing or of another kind is named, with its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.planner.problem import PlanProblem

_ABSENT = object()
# Beyond these a number is a slip or an attack: it would not fit a list, or a figure.
_MOST, _MOST_LAYERS = 10**12, 10_000
_OF_LAYERS = frozenset(
    {"num_hidden_layers", "mtp_num_hidden_layers", "num_nextn_predict_layers", "num_kv_shared_layers"}
)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object. `source` is the file's name, `place` the object's inside it."""

    values: Mapping[str, Any]
    source: str
    place: str = ""

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def integer(self, *names: str, default: Any = _ABSENT, least: int = 0) -> int:
        """The first of these fields that is there. Raises PlanProblem if none is, or no whole number."""
        value = self._first(names, default)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            raise self._problem(names[0], f"is {value!r}, and a whole number is needed")
        if value < least:
            raise self._problem(names[0], f"is {value!r}, and at least {least} is needed")
        most = _MOST_LAYERS if names[0] in _OF_LAYERS else _MOST
        if value > most:
            raise self._problem(names[0], f"is {value!r}, and at most {most:,} can be right")
        return int(value)

    def number(self, *names: str, default: Any = _ABSENT) -> float:
        """As `integer`, for numbers with a fraction."""
        value = self._first(names, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
            raise self._problem(names[0], f"is {value!r}, and a number is needed")
        return float(value)

    def text(self, *names: str, default: Any = _ABSENT) -> str:
        """As `integer`, for text."""
        value = self._first(names, default)
        if not isinstance(value, str):
            raise self._problem(names[0], f"is {value!r}, and text is needed")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean, or the default where it is absent or null. Raises PlanProblem for anything else."""
        value = self._first((name,), default)
        if not isinstance(value, bool):
            raise self._problem(name, f"is {value!r}, and true or false is needed")
        return value

    def names(self, *names: str) -> tuple[str, ...] | None:
        """A list of texts, or None where it is absent. Raises PlanProblem if it is something else."""
        value = self._first(names, None)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._problem(names[0], "is no list of texts")
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers, or None where it is absent. Raises PlanProblem if it is something else."""
        value = self._first((name,), None)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise self._problem(name, "is no list of whole numbers")
        return tuple(value)

    def part(self, name: str) -> "Fields | None":
        """An object inside this one, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._problem(name, "is no object")
        return Fields(value, self.source, f"{self.place}{name}.")

    def missing(self, name: str, why: str = "is missing") -> PlanProblem:
        """The problem to raise where a field that is needed is not there, or cannot be what it is."""
        return self._problem(name, why)

    def unknown(self, name: str, why: str, mend: str) -> PlanProblem:
        """The problem to raise where the field is right, and such models are not planned for."""
        return PlanProblem(f"{self.source}: {self.place}{name} {why}. {mend}")

    def _first(self, names: tuple[str, ...], default: Any) -> Any:
        for name in names:
            if self.has(name):
                return self.values[name]
        if default is _ABSENT:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            raise self._problem(f"{names[0]}{others}", "is missing")
        return default

    def _problem(self, name: str, what: str) -> PlanProblem:
        file = Path(self.source).name if self.source.endswith(".json") else "config.json"
        return PlanProblem(
            f"{self.source}: {self.place}{name} {what}. It is needed to compute the KV cache: take the "
            f"{file} as the model's makers published it."
        )
