"""The engine's flags as evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Parsers(Protocol):
    """What vLLM reads a model's answers with; `reasoning` is None for one that does not think."""

    @property
    def tools(self) -> str:
        """Its calls of tools."""

    @property
    def reasoning(self) -> str | None:
        """Its thoughts."""


@dataclass(frozen=True)
class Profile:
    """The engine's flags, with dashes: of a file for `vllm serve --config`, or as its log tells them.

    `parsers`: those that fit the model, where its name tells.
    """

    flags: Mapping[str, Any]
    file: Path | None = None
    parsers: Parsers | None = None

    @property
    def model(self) -> str:
        """The model, by whichever flag names it; empty if none does."""
        return str(self.flags.get("model") or self.flags.get("model-tag") or "")

    @property
    def place(self) -> str:
        """Where a flag is written."""
        return str(self.file) if self.file else "the engine's command line"

    @property
    def name(self) -> str:
        """What operators call it."""
        return self.file.stem if self.file else "that runs"

    def number(self, flag: str) -> float | None:
        """A flag that is a number; None where it is not set, or says something else."""
        value = self.flags.get(flag)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
