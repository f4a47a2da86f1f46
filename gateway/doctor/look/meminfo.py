"""The system's memory by /proc/meminfo. Needs the standard library alone, as `make up` does."""

import re
from collections.abc import Mapping
from pathlib import Path

from gateway.doctor.finding import Unseen

FILE = Path("/proc/meminfo")


def read(file: Path = FILE) -> Mapping[str, int] | Unseen:
    """Its figures by name, in MiB; none of them where it does not say how much memory there is."""
    try:
        text = file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return Unseen("this system has no /proc/meminfo")
    found = {name: int(kib) // 1024 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return found if found.get("MemTotal") else Unseen("/proc/meminfo does not say how much memory there is")
