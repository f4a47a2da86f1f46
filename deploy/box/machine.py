"""What this machine has, looked at and never changed: Docker, Compose, NVIDIA GPUs, memory."""

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.box import docker
from deploy.box.places import Places

MEMORY = Path("/proc/meminfo")
SECONDS = 20.0
QUERY = "--query-gpu=name,memory.total,memory.used,driver_version"
TOOLKIT = ("nvidia-container-runtime-hook", "nvidia-ctk", "nvidia-container-runtime")


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU; memory in MiB, None where it is the system's own (unified)."""

    name: str
    memory: int | None
    used: int | None
    driver: tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """One look. `docker_trouble` and `gpu_trouble` are empty, or what a program said instead of answering."""

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

    @property
    def docker(self) -> bool:
        """Whether containers can be run here by this user, with Compose."""
        return not self.docker_trouble and bool(self.compose)


def look(places: Places) -> Machine:
    """What is here now; takes a second or two."""
    server = docker.tried(places, "version", "--format", "{{.Server.Version}}", seconds=SECONDS)
    running = server.code == 0
    told = docker.tried(places, "info", "--format", "{{json .}}", seconds=SECONDS) if running else None
    info: dict[str, Any] = json.loads(told.out) if told and not told.code else {}
    compose = docker.tried(places, "compose", "version", "--short", seconds=SECONDS)
    gpus, trouble = _gpus()
    total, available = _memory(MEMORY)
    return Machine(
        docker_trouble="" if running else server.err.strip() or server.last_line,
        engine=version(server.out) if running else (),
        compose=version(compose.out) if not compose.code else (),
        data_root=Path(info["DockerRootDir"]) if info.get("DockerRootDir") else None,
        rootless=any("rootless" in str(option) or "userns" in str(option) for option in _security(info)),
        gpu_in_docker=_toolkit(info),
        gpu_trouble=trouble,
        gpus=gpus,
        memory=total,
        available=available,
    )


def version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, whatever stands around them: `v2.26.1-4` is (2, 26, 1)."""
    found = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _security(info: Mapping[str, Any]) -> list[Any]:
    return list(info.get("SecurityOptions") or [])


def _toolkit(info: Mapping[str, Any]) -> bool:
    """Whether Docker can hand a GPU to a container: by its runtime, its hook, or a CDI specification."""
    if "nvidia" in (info.get("Runtimes") or {}) or any(shutil.which(program) for program in TOOLKIT):
        return True
    discovered = json.dumps(info.get("DiscoveredDevices") or [])
    folders = [Path(folder) for folder in info.get("CDISpecDirs") or []]
    return "nvidia.com/gpu" in discovered or any(list(folder.glob("*nvidia*")) for folder in folders)


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    if not shutil.which("nvidia-smi"):
        return (), ""
    try:
        done = subprocess.run(
            ["nvidia-smi", QUERY, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"nvidia-smi does not answer: {error}"
    if done.returncode:
        return (), " ".join((done.stdout or done.stderr).split())[:200] or "nvidia-smi failed"
    rows = [row for row in csv.reader(done.stdout.splitlines(), skipinitialspace=True) if len(row) == 4]
    return tuple(Gpu(row[0], _number(row[1]), _number(row[2]), version(row[3])) for row in rows), ""


def _number(text: str) -> int | None:
    # A GB10 says [N/A]: its memory is the system's.
    return int(float(text)) if re.fullmatch(r"[\d.]+", text.strip()) else None


def _memory(file: Path) -> tuple[int, int]:
    """Total and available memory in MiB; zeros where the system does not say."""
    try:
        text = file.read_text(encoding="ascii")
    except OSError:
        return 0, 0
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB", text, re.MULTILINE))
    return int(found.get("MemTotal", 0)) // 1024, int(found.get("MemAvailable", 0)) // 1024
