"""This machine as evidence: Docker, NVIDIA GPUs, memory. Shared with `make up`, which asks before a start."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU; memory in MiB, None where it is the system's own (unified).

    `capability` is CUDA's, (8, 6) for an RTX 3090; None where the driver does not say it.
    """

    name: str
    memory: int | None
    used: int | None
    driver: tuple[int, ...]
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Machine:
    """One look. `docker_trouble` and `gpu_trouble` are empty, or what a program said instead of answering.

    `memory` and `available` are the system's, in MiB. `cuda` is the newest that the driver knows, or ().
    """

    docker_trouble: str
    engine: tuple[int, ...]
    compose: tuple[int, ...]
    data_root: Path | None
    rootless: bool
    gpu_in_docker: bool
    gpu_trouble: str
    gpus: tuple[Gpu, ...]
    memory: int
    available: int
    cuda: tuple[int, ...] = ()

    @property
    def docker(self) -> bool:
        """Whether containers can be run here by this user, with Compose."""
        return not self.docker_trouble and bool(self.compose)

    @property
    def unified(self) -> bool:
        """Whether the first GPU shares the system's memory, as a GB10 does."""
        return bool(self.gpus) and self.gpus[0].memory is None


def version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, whatever stands around them: `v2.26.1-4` is (2, 26, 1)."""
    found = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def spoken(numbers: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, numbers))


def memory(machine: Machine, gpu: Gpu) -> tuple[int, int]:
    """Total and free memory of a card in MiB: the system's where it shares that."""
    if gpu.memory is None:
        return machine.memory, machine.available
    return gpu.memory, gpu.memory - (gpu.used or 0)
