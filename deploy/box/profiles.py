"""Which profile a card gets, and what a profile asks of the machine. What it sets is in deploy/profiles/."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from deploy.box.machine import Machine
from deploy.box.places import Places
from gateway.doctor.vllm import IMAGE_BYTES

WITHOUT_GPU = "cpu"

# A part of the name that nvidia-smi prints, and its profile; variants of a profile are asked for by name.
BY_CARD = (("GB10", "spark"), ("RTX 5090", "rtx5090"), ("RTX 3090", "rtx3090"))


@dataclass(frozen=True)
class Needs:
    """Memory in MiB of its card, a little less than is printed on the box; disk for model and image."""

    card: int
    model_bytes: int
    image_bytes: int = IMAGE_BYTES


# The sizes are those of the models in deploy/profiles/, rounded up: `weights` checks the exact ones.
NEEDS: Mapping[str, Needs] = MappingProxyType(
    {
        "spark": Needs(110_000, model_bytes=40_000_000_000),
        "spark-batch": Needs(110_000, model_bytes=40_000_000_000),
        "rtx5090": Needs(31_000, model_bytes=25_000_000_000),
        "rtx3090": Needs(23_500, model_bytes=20_000_000_000),
        "rtx3090-shared": Needs(23_500, model_bytes=8_000_000_000),
        WITHOUT_GPU: Needs(0, model_bytes=600_000_000, image_bytes=8_000_000_000),
    }
)


def known(places: Places) -> list[str]:
    """The names of all profiles."""
    return sorted(file.stem for file in places.profiles.glob("*.yaml"))


def for_machine(machine: Machine) -> str | None:
    """The profile for the first card that has one; None if no card has."""
    found = (profile for gpu in machine.gpus for mark, profile in BY_CARD if mark in gpu.name)
    return next(found, None)


def card(machine: Machine, profile: str) -> int:
    """Which of the machine's cards a profile is for: the first of its kind, else the first of all."""
    marks = [mark for mark, known in BY_CARD if profile.startswith(known)]
    fitting = (at for at, gpu in enumerate(machine.gpus) if any(mark in gpu.name for mark in marks))
    return next(fitting, 0)


def memory_taken(file: Path) -> float | None:
    """The share of the card that the engine wants free at its start; None where its file does not say."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    found = re.search(r"^gpu-memory-utilization:\s*([\d.]+)", text, re.MULTILINE)
    return float(found[1]) if found else None
