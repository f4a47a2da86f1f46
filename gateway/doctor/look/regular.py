"""Reads files whose reading ends: regular ones of a bounded size. A pipe or a device would hold a look up."""

import stat
from pathlib import Path

MOST_BYTES = 1 << 20


def trouble(file: Path, most: int = MOST_BYTES) -> str:
    """Why it is not read; empty where it may be, or is not there: who reads it says that better."""
    try:
        looked = file.stat()
    except (OSError, ValueError):
        return ""
    if stat.S_ISDIR(looked.st_mode):
        return f"{file} is a folder"
    if is_endless(file):
        return f"{file} is a pipe or a device, and no file"
    if looked.st_size > most:
        return f"{file} has more than {most >> 20} MiB"
    return ""


def is_endless(file: Path) -> bool:
    """Whether its reading may never end: a pipe, a device, a socket."""
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def text(file: Path, most: int = MOST_BYTES) -> str:
    """What it holds. Raises OSError where it is no such file, or larger, and UnicodeDecodeError."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(0, "it is no regular file")
    with file.open("rb") as opened:
        read = opened.read(most + 1)
    if len(read) > most:
        raise OSError(0, f"it has more than {most >> 20} MiB")
    return read.decode("utf-8-sig")


def is_missing(file: Path) -> bool:
    """Whether there is none of that name, as far as this user can see."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False
