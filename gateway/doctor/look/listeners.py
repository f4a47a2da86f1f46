"""Which TCP ports are taken on this host, and by whom. The kernel is asked: binding some would need root."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
PROCESSES = Path("/proc")


def listening(tables: Iterable[Path] = TABLES) -> frozenset[int]:
    """The ports that somebody listens on, on whatever address."""
    return frozenset(port for port, _ in _sockets(tables))


def owners(tables: Iterable[Path] = TABLES, processes: Path = PROCESSES) -> dict[int, str]:
    """Those ports with the process that has each, as in `caddy (pid 12)`; of another user's, that it is."""
    sockets = dict(_sockets(tables))
    held = _held(processes, set(sockets.values())) if sockets else {}
    return {port: held.get(inode, "a process of another user") for port, inode in sockets.items()}


def environment(port: int, names: str, processes: Path = PROCESSES) -> dict[str, str] | None:
    """The variables that begin with `names` of the process that listens; None if they cannot be seen."""
    number = re.search(r"\(pid (\d+)\)", owners(processes=processes).get(port, ""))
    try:
        text = (processes / number[1] / "environ").read_bytes().decode(errors="replace") if number else ""
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.split("\0"))
    return {name: value for name, _, value in pairs if name.startswith(names)} if text else None


def _sockets(tables: Iterable[Path]) -> Iterator[tuple[int, str]]:
    """Port and inode of each socket that listens."""
    for table in tables:
        if not table.exists():
            continue
        for line in table.read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _held(processes: Path, inodes: set[str]) -> dict[str, str]:
    held: dict[str, str] = {}
    for process in processes.glob("[0-9]*"):
        for inode in _inodes(process) & inodes:
            held.setdefault(inode, f"{_name(process)} (pid {process.name})")
    return held


def _inodes(process: Path) -> set[str]:
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                found.add(match[1])
    except OSError:  # it has ended, or is not ours to look into
        pass
    return found


def _name(process: Path) -> str:
    """What it was started as: of an interpreter, the module or script that it runs."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        name = (process / "comm").read_text(errors="replace").strip()
    except OSError:
        return "a process"
    words = [word.rpartition("/")[2] for word in words if word and word not in {"-m", "-S", "-E", "-u"}]
    return " ".join(words[1:3]) if name.startswith("python") and len(words) > 1 else name
