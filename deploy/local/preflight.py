"""What this machine must have, asked before anything is changed; each lack is one line with its mend."""

import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.local.problem import Problem

NEWEST_PYTHON = (3, 14)
OLDEST_GLIBC = (2, 28)
CPU_INFORMATION = Path("/proc/cpuinfo")

# What the wheel of llama.cpp is built with and for.
WHEEL_CPU_FLAGS = frozenset({"avx2", "bmi2", "f16c", "fma"})
WHEEL_GLIBC = (2, 17)
WHEEL_MACOS = (13,)


@dataclass(frozen=True)
class Machine:
    """What decides which engines run here. `libc` is its name and version, `macos` empty elsewhere."""

    system: str
    processor: str
    libc: tuple[str, str]
    cpu_flags: frozenset[str]
    python: tuple[int, int]
    macos: str = ""

    @property
    def is_x86(self) -> bool:
        """Whether its processor is an x86-64."""
        return self.processor.lower() in {"x86_64", "amd64"}

    def has_glibc(self, oldest: tuple[int, int]) -> bool:
        """Whether its C library is glibc of this version or newer."""
        name, version = self.libc
        return name == "glibc" and _numbers(version) >= oldest


def look(cpu_information: Path = CPU_INFORMATION) -> Machine:
    """This machine."""
    listed = ""
    if cpu_information.exists():
        listed = cpu_information.read_text(encoding="utf-8", errors="replace")
    return Machine(
        platform.system(),
        platform.machine(),
        platform.libc_ver(),
        cpu_flags(listed),
        sys.version_info[:2],
        platform.mac_ver()[0],
    )


def cpu_flags(cpu_information: str) -> frozenset[str]:
    """What the text of /proc/cpuinfo says that the first CPU can do."""
    lines = cpu_information.splitlines()
    return frozenset(
        next((line for line in lines if line.startswith(("flags", "Features"))), "").partition(":")[2].split()
    )


def check_engine(machine: Machine | None = None) -> None:
    """Returns if vLLM's CPU build can run here. Raises Problem otherwise."""
    if trouble := vllm_trouble(machine or look()):
        raise Problem(
            f"{trouble} ENGINE=llamacpp serves the same model with llama.cpp. Or put the gateway before an "
            "engine that runs elsewhere: GATEWAY_UPSTREAM_URL=http://… .venv/bin/gateway serve"
        )


def vllm_trouble(machine: Machine) -> str:
    """Why vLLM's CPU build cannot run on a machine, as a sentence; empty if it can."""
    if machine.system != "Linux" or not machine.is_x86:
        return (
            "vLLM's CPU build runs on Linux on x86-64 (WSL2 too), and this is "
            f"{machine.system} on {machine.processor}."
        )
    if not machine.has_glibc(OLDEST_GLIBC):
        found = " ".join(filter(None, machine.libc)) or "another C library"
        return f"vLLM's CPU build needs glibc 2.28 or newer, and this system has {found}."
    if "avx2" not in machine.cpu_flags:
        return (
            "vLLM's CPU build needs AVX2, and this CPU has none (in a virtual machine, let it see the host's "
            "CPU; for QEMU: -cpu host)."
        )
    if machine.python > NEWEST_PYTHON:
        return (
            f"vLLM's CPU build runs on Python 3.11 to 3.14, and this is {_spoken(machine.python)} (to change "
            "that, remove .venv and run make again with PYTHON=python3.13, say)."
        )
    return ""


def wheel_trouble(machine: Machine) -> str:
    """Why the wheel of llama.cpp does not run on a machine, as a sentence; empty if it does."""
    if machine.system == "Darwin" and _numbers(machine.macos) >= WHEEL_MACOS:
        return ""
    known = machine.is_x86 or machine.processor.lower() in {"aarch64", "arm64"}
    if machine.system != "Linux" or not known or not machine.has_glibc(WHEEL_GLIBC):
        return f"There is no ready build of llama.cpp for {_described(machine)}."
    lacks = sorted(WHEEL_CPU_FLAGS - machine.cpu_flags) if machine.is_x86 else []
    return f"The ready build of llama.cpp needs a CPU with {', '.join(lacks)}." if lacks else ""


def _described(machine: Machine) -> str:
    version = machine.macos or " ".join(filter(None, machine.libc))
    return f"{machine.system} on {machine.processor}" + (f" ({version})" if version else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _spoken(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def check_space(path: Path, needed_bytes: int) -> None:
    """Raises Problem if the file system that a path lies on (or will lie on) has less free space."""
    folder = next(parent for parent in [path, *path.parents] if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise Problem(
            f"The disk of {folder} has {free / 1e9:.1f} GB free and {needed_bytes / 1e9:.1f} GB are needed: "
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk, then run the same again."
        )
