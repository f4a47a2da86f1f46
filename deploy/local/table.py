"""The processes of this machine, as /proc tells of them on Linux, and elsewhere (macOS) `ps`.

Needs the standard library alone: `make clean` does.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PROCESSES = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process: its id, its group's and its session's."""

    id: int
    group: int
    session: int


class Table(Protocol):
    """What is asked of either. A process that has ended is nobody's mistake."""

    def words(self, process: int) -> list[bytes]:
        """Where a mark is looked for; none for a process that is ending, or is another user's."""

    def of_session(self, leader: int, folder: Path) -> list[Process]:
        """All processes of the leader's session, as far as can be told those that work in the folder."""

    def name(self, process: int) -> str:
        """What the kernel calls it; `?` if it has ended."""

    def lives(self, process: int) -> bool:
        """Whether it is there and has not ended."""


def here() -> Table:
    """The table of this machine."""
    return Proc() if (PROCESSES / "self" / "stat").exists() else Ps()


class Proc:
    """Linux."""

    def words(self, process: int) -> list[bytes]:
        """Its environment."""
        try:
            return (PROCESSES / str(process) / "environ").read_bytes().strip(b"\0").split(b"\0")
        except OSError:
            return []

    def of_session(self, leader: int, folder: Path) -> list[Process]:
        """Those of the session that work in the folder."""
        found = (self._read(entry, folder) for entry in PROCESSES.iterdir() if entry.name.isdigit())
        return [process for process in found if process is not None and process.session == leader]

    def name(self, process: int) -> str:
        """The file `comm`."""
        try:
            return (PROCESSES / str(process) / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return "?"

    def lives(self, process: int) -> bool:
        """One that has ended stays there as Z until its parent has asked for its exit code."""
        try:
            return b") Z " not in (PROCESSES / str(process) / "stat").read_bytes()
        except OSError:
            return False

    def _read(self, entry: Path, folder: Path) -> Process | None:
        try:
            # The name in parentheses may hold anything, more parentheses too.
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if (entry / "cwd").readlink() != folder:
                return None
        except OSError:
            # It has ended meanwhile, or is another user's.
            return None
        return Process(int(entry.name), group=int(fields[2]), session=int(fields[3]))


class Ps:
    """Everywhere else: what POSIX promises of `ps`, which shows no environment and no working folder."""

    def words(self, process: int) -> list[bytes]:
        """The end of its command line from each word on: an argument with spaces in it is one of them."""
        said = self._ask("-ww", "-o", "command=", "-p", str(process)).rstrip(b"\n").split(b" ")
        return [b" ".join(said[start:]) for start in range(len(said))] if any(said) else []

    def of_session(self, leader: int, folder: Path) -> list[Process]:
        """All of the session, wherever they work."""
        del folder
        pairs = (line.split() for line in self._ask("-A", "-o", "pid=", "-o", "pgid=").splitlines())
        found = (self._process(int(process), int(group)) for process, group in pairs)
        return [process for process in found if process.session == leader]

    def name(self, process: int) -> str:
        """The last part of its program's path."""
        said = self._ask("-o", "comm=", "-p", str(process)).decode(errors="replace").strip()
        return Path(said).name if said else "?"

    def lives(self, process: int) -> bool:
        """Its state: Z is one that has ended."""
        state = self._ask("-o", "stat=", "-p", str(process)).strip()
        return bool(state) and not state.startswith(b"Z")

    def _ask(self, *options: str) -> bytes:
        done = subprocess.run(["ps", *options], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.stdout

    def _process(self, process: int, group: int) -> Process:
        try:
            return Process(process, group, os.getsid(process))
        except OSError:
            return Process(process, group, session=-1)
