"""The shipped profiles as data: what a planner cannot know of a box, with its reasons (profiles.toml)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.planner.flags import Flag, Part


@dataclass(frozen=True, slots=True)
class Shipped:
    """One shipped profile. `figures` has places in braces for what is computed from `kv_cache`."""

    name: str
    model: str
    hardware: str
    kv_cache: str
    head: str
    figures: str
    flags: tuple[Flag, ...]
    gateway: Mapping[str, Any]

    def value(self, flag: str) -> Any:
        """A flag's value, or None."""
        return next((one.value for one in self.flags if one.name == flag), None)


def find(name: str) -> Shipped | None:
    """The shipped profile of that name; None if there is none."""
    document = _document()
    if name == "everywhere" or name not in document:
        return None
    said = document[name]
    parts: tuple[Part, ...] = ("named", "capacity", "special")
    flags = tuple(flag for part in parts for flag in _flags(said.get(part, ()), part))
    return Shipped(
        name,
        said["model"],
        said["hardware"],
        said["kv_cache"],
        said["head"],
        said["figures"],
        flags,
        said["gateway"],
    )


def names() -> tuple[str, ...]:
    """The names of all."""
    return tuple(name for name in _document() if name != "everywhere")


def everywhere() -> tuple[Flag, ...]:
    """What each profile says alike, these and an operator's own."""
    return tuple(_flags(_document()["everywhere"], "everywhere"))


def _flags(said: Any, part: Part) -> list[Flag]:
    return [Flag(one["flag"], one["value"], one["reason"], part) for one in said]


@cache
def _document() -> Mapping[str, Any]:
    text = resources.files("gateway.planner").joinpath("profiles.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))
