"""The processes of a stack, found by the session that supervisord leads, whoever their parent is now.

vLLM's workers outlive a killed server, and writing their title destroys the environment that /proc shows:
session and working folder are what is left to know them by.
"""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from deploy.local import table
from deploy.local.table import Process

# Supervisord is started with it; its value is the checkout. A process id alone may be somebody else's by now.
MARK = "LOCAL_GATEWAY_STACK"

KILL_SECONDS = 10.0


def mark(checkout: Path) -> dict[str, str]:
    """The variable that the leader is started with."""
    return {MARK: str(checkout)}


def mark_as_arguments(checkout: Path) -> list[str]:
    """The same for supervisord's command line, where a process's environment cannot be seen: else nothing."""
    if isinstance(table.here(), table.Proc):
        return []
    return ["--identifier", _mark_of(checkout).decode(errors="surrogateescape")]


def is_leader(process: int, checkout: Path) -> bool:
    """Whether a process id is that of this checkout's supervisord."""
    return _mark_of(checkout) in table.here().words(process)


def _mark_of(checkout: Path) -> bytes:
    return b"%s=%s" % (MARK.encode(), os.fsencode(checkout))


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
    words = table.here().words(leader)
    if any(words) and _mark_of(checkout) not in words:
        # The leader has ended, and its process id is somebody else's by now.
        return []
    return table.here().of_session(leader, checkout)


def name(process: int) -> str:
    """What the kernel calls a process; `?` for one that has ended."""
    return table.here().name(process)


def orphans(processes: Iterable[Process]) -> list[Process]:
    """Those whose group has lost its leader: what a service has left behind that died."""
    return [process for process in processes if not table.here().lives(process.group)]


def kill(processes: Iterable[Process]) -> None:
    """Kills processes and returns once they are gone. Raises TimeoutError if one does not go."""
    left = list(processes)
    deadline = time.monotonic() + KILL_SECONDS
    for process in left:
        _send(process, signal.SIGKILL)
    while any(table.here().lives(process.id) for process in left):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes do not end: {[process.id for process in left]}")
        time.sleep(0.02)


def _send(process: Process, number: signal.Signals) -> None:
    try:
        os.kill(process.id, number)
    except ProcessLookupError:
        return
