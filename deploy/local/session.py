"""The processes of a stack, found by the session that supervisord leads, whoever their parent is now.

vLLM's workers outlive a killed server, and writing their title destroys the environment that /proc shows:
session and working folder are what is left to know them by.
"""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Supervisord is started with it; its value is the checkout. A process id alone may be somebody else's by now.
MARK = "LOCAL_GATEWAY_STACK"

PROCESSES = Path("/proc")
KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Process:
    """One process: its id, its group's and its session's."""

    id: int
    group: int
    session: int


def mark(checkout: Path) -> dict[str, str]:
    """The variable that the leader is started with."""
    return {MARK: str(checkout)}


def is_leader(process: int, checkout: Path) -> bool:
    """Whether a process id is that of this checkout's supervisord."""
    return _mark_of(checkout) in _variables(process)


def _mark_of(checkout: Path) -> bytes:
    return b"%s=%s" % (MARK.encode(), os.fsencode(checkout))


def _variables(process: int) -> list[bytes]:
    """The environment of a process: empty for one that is ending, or is another user's."""
    try:
        return (PROCESSES / str(process) / "environ").read_bytes().strip(b"\0").split(b"\0")
    except OSError:
        return []


def recorded(pid_file: Path) -> int | None:
    """The process id that supervisord wrote down, if it did: it may have ended since."""
    try:
        return int(pid_file.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def running(pid_file: Path, checkout: Path) -> int | None:
    """Supervisord's process id, or None if it does not run."""
    process = recorded(pid_file)
    return process if process and is_leader(process, checkout) else None


def members(leader: int, checkout: Path) -> list[Process]:
    """All processes of the leader's session that work in the checkout, whether or not the leader lives."""
    variables = _variables(leader)
    if any(variables) and _mark_of(checkout) not in variables:
        # The leader has ended, and its process id is somebody else's by now.
        return []
    found = (_read(folder, checkout) for folder in PROCESSES.iterdir() if folder.name.isdigit())
    return [process for process in found if process is not None and process.session == leader]


def _read(folder: Path, checkout: Path) -> Process | None:
    try:
        # The name in parentheses may hold anything, more parentheses too.
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if (folder / "cwd").readlink() != checkout:
            return None
    except OSError:
        # It has ended meanwhile, or is another user's.
        return None
    return Process(int(folder.name), group=int(fields[2]), session=int(fields[3]))


def name(process: int) -> str:
    """What the kernel calls a process; `?` for one that has ended."""
    try:
        return (PROCESSES / str(process) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"


def orphans(processes: Iterable[Process]) -> list[Process]:
    """Those whose group has lost its leader: what a service has left behind that died."""
    return [process for process in processes if not _lives(process.group)]


def kill(processes: Iterable[Process]) -> None:
    """Kills processes and returns once they are gone. Raises TimeoutError if one does not go."""
    left = list(processes)
    deadline = time.monotonic() + KILL_SECONDS
    for process in left:
        _send(process, signal.SIGKILL)
    while any(_lives(process.id) for process in left):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes do not end: {[process.id for process in left]}")
        time.sleep(0.02)


def _send(process: Process, number: signal.Signals) -> None:
    try:
        os.kill(process.id, number)
    except ProcessLookupError:
        return


def _lives(process: int) -> bool:
    try:
        # One that has ended stays there as Z until its parent has asked for its exit code.
        return b") Z " not in (PROCESSES / str(process) / "stat").read_bytes()
    except OSError:
        return False
