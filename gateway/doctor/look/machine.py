"""Looks at this machine: Docker, NVIDIA GPUs, memory. Changes nothing, needs the standard library alone."""

import csv
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.doctor.finding import Unseen
from gateway.doctor.look import meminfo
from gateway.doctor.look.programs import ABSENT, SECONDS, SILENT, Docker, Done, document, run
from gateway.doctor.machine import Gpu, Machine, version

QUERY = "--query-gpu=name,memory.total,memory.used,driver_version"
WITH_CAPABILITY = f"{QUERY},compute_cap"  # drivers before 510 refuse the whole question
TOOLKIT = ("nvidia-container-runtime-hook", "nvidia-ctk", "nvidia-container-runtime")


def look(docker: Docker) -> Machine:
    """What is here now; takes a second or two."""
    server = docker("version", "--format", "{{.Server.Version}}", seconds=SECONDS)
    running = server.code == 0
    told = docker("info", "--format", "{{json .}}", seconds=SECONDS) if running else None
    info = document(told.out) if told and not told.code else {}
    compose = docker("compose", "version", "--short", seconds=SECONDS)
    gpus, trouble = _gpus()
    memory = meminfo.read()
    figures = {} if isinstance(memory, Unseen) else memory
    return Machine(
        docker_trouble="" if running else server.err.strip() or server.last_line,
        engine=version(server.out) if running else (),
        compose=version(compose.out) if not compose.code else (),
        data_root=Path(str(info["DockerRootDir"])) if info.get("DockerRootDir") else None,
        rootless=any("rootless" in str(option) or "userns" in str(option) for option in _security(info)),
        gpu_in_docker=_toolkit(info),
        gpu_trouble=trouble,
        gpus=gpus,
        memory=figures.get("MemTotal", 0),
        available=figures.get("MemAvailable", 0),
        cuda=cuda(run(["nvidia-smi"]).out) if gpus else (),
    )


def cuda(text: str) -> tuple[int, ...]:
    """The newest CUDA that the driver knows, from the head of nvidia-smi's table; () if it does not say."""
    found = re.search(r"CUDA(?: \w+)? Version\s*:\s*(\d+\.\d+)", text)
    return version(found[1]) if found else ()


def _security(info: Mapping[str, Any]) -> list[Any]:
    said = info.get("SecurityOptions")
    return said if isinstance(said, list) else []


def _toolkit(info: Mapping[str, Any]) -> bool:
    """Whether Docker can hand a GPU to a container: by its runtime, its hook, or a CDI specification."""
    if "nvidia" in str(info.get("Runtimes")) or any(shutil.which(program) for program in TOOLKIT):
        return True
    discovered = json.dumps(info.get("DiscoveredDevices") or [])
    said = info.get("CDISpecDirs")
    folders = [Path(str(folder)) for folder in said] if isinstance(said, list) else []
    return "nvidia.com/gpu" in discovered or any(list(folder.glob("*nvidia*")) for folder in folders)


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    done = _asked(WITH_CAPABILITY)
    if done.code not in {0, ABSENT, SILENT}:
        done = _asked(QUERY)
    if done.code == ABSENT:
        return (), ""
    if done.code:
        return (), " ".join((done.out or done.err).split())[:200] or "nvidia-smi failed"
    return gpus(done.out), ""


def _asked(query: str) -> Done:
    return run(["nvidia-smi", query, "--format=csv,noheader,nounits"])


def gpus(listed: str) -> tuple[Gpu, ...]:
    """The GPUs in what nvidia-smi answers to QUERY, with or without their capability."""
    rows = [row for row in csv.reader(listed.splitlines(), skipinitialspace=True) if len(row) in {4, 5}]
    return tuple(
        Gpu(row[0], _number(row[1]), _number(row[2]), version(row[3]), _capability("".join(row[4:])))
        for row in rows
    )


def _capability(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,2})\.(\d)", text.strip())
    return (int(found[1]), int(found[2])) if found else None


def _number(text: str) -> int | None:
    # A GB10 says [N/A]: its memory is the system's.
    return int(float(text)) if re.fullmatch(r"\d{1,12}(\.\d+)?", text.strip()) else None
