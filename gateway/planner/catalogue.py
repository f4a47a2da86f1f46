"""The built-in models: what is planned for by name, without any network."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.planner import config
from gateway.planner.shape import Shape
from gateway.planner.weights import Weights, estimate, published


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the catalogue. `parameters` are billions, as its makers say, `active` too or counted."""

    name: str
    repository: str
    shape: Shape
    weights: Weights
    parameters: float
    active: float


def names() -> tuple[str, ...]:
    """All names, in the catalogue's order."""
    return tuple(_entries())


def find(name: str) -> Entry | None:
    """The entry of that name or of that repository on the hub, in any case; None if there is none."""
    wanted = name.strip().lower()
    for known, entry in _entries().items():
        if wanted in (known, entry.repository.lower()):
            return entry
    return None


def every() -> tuple[Entry, ...]:
    """All entries."""
    return tuple(_entries().values())


@cache
def _entries() -> Mapping[str, Entry]:
    text = resources.files("gateway.planner").joinpath("catalogue.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    found = {name: _entry(name, document) for name in document if not name.startswith("_")}
    return MappingProxyType(found)


def _entry(name: str, document: Mapping[str, Any]) -> Entry:
    said = document[name]
    own = dict(document[said["like"]]["config"] if "like" in said else said["config"])
    if "quantization_config" in said:
        own["quantization_config"] = said["quantization_config"]
    shape = config.read(own, f"catalogue entry {name}")
    source = f"{said['source']}, {said['date']:%Y-%m-%d}"
    size = said.get("bytes") or estimate(shape).bytes
    active = said.get("active", shape.parameters.active / 1e9)
    weights = published(shape, size, active * 1e9, source)
    if not weights.experts:
        read = size - _unread_bytes(shape)
        weights = replace(weights, active_bytes=read, fixed_bytes=read)
    if "bytes" not in said:
        weights = replace(weights, basis="estimated")
    return Entry(name, said["repository"], shape, weights, said["parameters"], active)


def _unread_bytes(shape: Shape) -> int:
    """What of a dense model's files no token reads: embeddings, which are looked up, and what sees images.

    Both are of 16 bit. So are other layers of a quantised checkpoint: only the published size knows which.
    """
    count = shape.parameters
    looked_up = (0 if count.tied else count.embedding) + count.looked_up
    return (looked_up + (shape.vision_parameters or 0)) * shape.dtype_bytes
