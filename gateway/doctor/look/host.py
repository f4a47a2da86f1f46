"""The host: memory, processes on the GPU, limits, clock, disks, by /proc and programs with a time-out."""

import csv
import resource
import shutil
from pathlib import Path

from gateway.doctor.evidence import Clock, Holder, Limits, Memory
from gateway.doctor.finding import Unseen
from gateway.doctor.look import meminfo
from gateway.doctor.look.programs import ABSENT, run

MOUNTS = Path("/proc/mounts")
CGROUPS = Path("/sys/fs/cgroup")
HELD = ["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits"]


def memory(file: Path = meminfo.FILE) -> Memory | Unseen:
    """The system's memory."""
    told = meminfo.read(file)
    if isinstance(told, Unseen):
        return told
    names = ("MemTotal", "MemAvailable", "Cached", "SwapTotal", "SwapFree")
    return Memory(*(told.get(name, 0) for name in names))


def holders() -> tuple[Holder, ...] | Unseen:
    """The processes that nvidia-smi names; it names none that the driver does not show to this user."""
    done = run(HELD)
    if done.code == ABSENT:
        return Unseen("there is no nvidia-smi")
    if done.code:
        return Unseen(f"nvidia-smi fails ({done.last_line[:100]})")
    return held(done.out)


def held(listed: str) -> tuple[Holder, ...]:
    """The processes in what nvidia-smi answers to HELD."""
    rows = [row for row in csv.reader(listed.splitlines(), skipinitialspace=True) if len(row) == 3]
    return tuple(
        Holder(int(row[0]), row[1].rpartition("/")[2], int(row[2]) if row[2].isdigit() else None)
        for row in rows
        if row[0].isdigit()
    )


def limits(cgroups: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> Limits:
    """What this process may do; one that is started from the same shell may do the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 30
    return Limits(
        soft if soft != resource.RLIM_INFINITY else most,
        hard if hard != resource.RLIM_INFINITY else most,
        _pids_left(cgroups, own),
    )


def _pids_left(cgroups: Path, own: Path) -> int | None:
    """By the tightest of the groups that this process is in; None without a limit."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((line.partition("::")[2] for line in lines if line.startswith("0::")), "/")
    group = cgroups / path.strip("/")
    left = [
        int(most) - int(now)
        for folder in (group, *group.parents)
        if folder.is_relative_to(cgroups)
        and (most := _read(folder / "pids.max")).isdigit()
        and (now := _read(folder / "pids.current")).isdigit()
    ]
    return min(left, default=None)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def clock(ahead_seconds: float | None, against: str) -> Clock:
    """The clock against another's, and what timedatectl says; None where it is not there."""
    done = run(["timedatectl", "show", "--property=NTPSynchronized", "--value"], seconds=5)
    said = done.out.strip() if not done.code else ""
    return Clock(ahead_seconds, against, {"yes": True, "no": False}.get(said))


def filesystem(folder: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system that a folder lies on; empty if the system does not say."""
    try:
        lines = [line.split() for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return ""
    there = folder.resolve()
    under = [
        (len(fields[1]), fields[2]) for fields in lines if len(fields) > 2 and there.is_relative_to(fields[1])
    ]
    return max(under, default=(0, ""))[1]


def nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that this user can see: on the same disk as a rule."""
    for there in (folder.absolute(), *folder.absolute().parents):
        try:
            if there.exists():
                return there
        except OSError:
            continue
    return Path("/")


def free_bytes(folder: Path) -> int:
    """Room on its disk."""
    return shutil.disk_usage(nearest(folder)).free
