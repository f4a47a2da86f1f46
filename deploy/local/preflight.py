"""What this machine must have, asked before anything is changed; each lack is one line with its mend."""

import platform
import shutil
import sys
from pathlib import Path

from deploy.local.problem import Problem

NEWEST_PYTHON = (3, 14)
OLDEST_GLIBC = (2, 28)
CPU_INFORMATION = Path("/proc/cpuinfo")


def check_engine(cpu_information: Path = CPU_INFORMATION) -> None:
    """Returns if vLLM's CPU build can run here. Raises Problem otherwise."""
    check_platform(platform.system(), platform.machine(), platform.libc_ver())
    check_avx2(cpu_information.read_text(encoding="utf-8", errors="replace"))
    check_python(sys.version_info[:2])


def check_platform(system: str, machine: str, libc: tuple[str, str]) -> None:
    """Raises Problem unless this is Linux on x86-64 with a glibc that vLLM's wheel runs on."""
    if system != "Linux" or machine.lower() not in {"x86_64", "amd64"}:
        raise Problem(
            f"The local mode runs on Linux on x86-64 (WSL2 too), and this is {system} on {machine}: not "
            "supported yet. Use such a machine, or put the gateway alone before an engine that runs "
            "elsewhere: GATEWAY_UPSTREAM_URL=http://… .venv/bin/gateway serve"
        )
    name, version = libc
    if name != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < OLDEST_GLIBC:
        raise Problem(
            f"vLLM's CPU build needs glibc 2.28 or newer, and this system has {name or 'another C library'} "
            f"{version}: use a distribution such as Debian 10, Ubuntu 20.04 or newer."
        )


def check_avx2(cpu_information: str) -> None:
    """Raises Problem if the text of /proc/cpuinfo lists no AVX2."""
    flags = next((line for line in cpu_information.splitlines() if line.startswith("flags")), "")
    if "avx2" not in flags.split():
        raise Problem(
            "This CPU has no AVX2, which vLLM's CPU build needs: use a machine with a newer one; in "
            "a virtual machine, let it see the host's CPU (for QEMU: -cpu host)."
        )


def check_python(version: tuple[int, int]) -> None:
    """Raises Problem for a Python that the engine has no wheels for."""
    if version > NEWEST_PYTHON:
        raise Problem(
            f"The engine runs on Python 3.11 to 3.14, and this is {version[0]}.{version[1]}. "
            "Remove .venv and run make again with PYTHON=python3.13, say."
        )


def check_space(path: Path, needed_bytes: int) -> None:
    """Raises Problem if the file system that a path lies on (or will lie on) has less free space."""
    folder = next(parent for parent in [path, *path.parents] if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise Problem(
            f"The disk of {folder} has {free / 1e9:.1f} GB free and {needed_bytes / 1e9:.1f} GB are needed: "
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk, then run the same again."
        )
