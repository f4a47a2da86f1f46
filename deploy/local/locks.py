"""Keeps two commands from installing the same thing at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.progress import step


@contextmanager
def held(target: Path, doing: str) -> Iterator[int]:
    """Holds the lock that belongs to a path while `doing` something; whoever comes second waits and says so.

    It dies with its process, and with all to which the open file that it yields was handed on.
    """
    path = target.with_name(f".{target.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step(f"Waiting for another command that is {doing}"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
