"""The profiles as files: their names, where they lie and what stands in them. Nothing is judged here."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "profiles"
NAMES = ("spark", "spark-batch", "rtx5090", "rtx3090", "rtx3090-shared", "cpu")
FLAG = re.compile(r"^([a-z][a-z-]*):")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a profile and the comment above it, its lines joined."""

    name: str
    comment: str


def serve_file(name: str) -> Path:
    """The profile for `vllm serve --config`."""
    return FOLDER / f"{name}.yaml"


def gateway_file(name: str) -> Path:
    """The gateway's settings for the same box."""
    return FOLDER / "gateway" / f"{name}.toml"


def overlay_file(name: str) -> Path:
    """What compose.yaml lacks for that box."""
    return FOLDER / "compose" / f"{name}.yaml"


def serve(name: str) -> dict[str, Any]:
    """The engine's flags."""
    return mapping(serve_file(name))


def gateway(name: str) -> dict[str, Any]:
    """The gateway's settings as written."""
    return tomllib.loads(gateway_file(name).read_text(encoding="utf-8"))


def overlay(name: str) -> dict[str, Any]:
    """The overlay as written."""
    return mapping(overlay_file(name))


def compose() -> dict[str, Any]:
    """compose.yaml as written: variables as they stand, anchors resolved."""
    return mapping(ROOT / "compose.yaml")


def mapping(file: Path) -> dict[str, Any]:
    """A YAML file that holds one mapping."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(document, dict), file
    return document


def flags(name: str) -> list[Flag]:
    """All flags of a profile in their order, each with the comment lines directly above it."""
    found: list[Flag] = []
    comment: list[str] = []
    for line in serve_file(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
            continue
        if match := FLAG.match(line):
            found.append(Flag(match[1], " ".join(comment)))
        comment = []
    return found
