"""Which TCP ports are taken on this host. Asked of the kernel: binding one below 1024 would need root."""

from collections.abc import Iterable
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"


def listening(tables: Iterable[Path] = TABLES) -> frozenset[int]:
    """The ports that somebody listens on, on whatever address."""
    return frozenset(port for table in tables if table.exists() for port in _ports(table.read_text("ascii")))


def _ports(table: str) -> Iterable[int]:
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING:
            yield int(fields[1].rpartition(":")[2], 16)
