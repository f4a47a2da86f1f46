"""Files that are written in one step: whoever reads one meanwhile gets the old one or the new one, whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o600
# Read by programs of other users, those of containers too.
PUBLIC = 0o644


def replace(file: Path, content: str | bytes, *, mode: int, group: int = -1) -> None:
    """Gives a file this content, mode and group (-1: one's own), whether it was there or not.

    A link is replaced, not followed. What fails changes nothing and leaves nothing behind.
    """
    with _beside(file, content, mode, group) as made:
        made.replace(file)


def create(file: Path, content: str | bytes, *, mode: int) -> None:
    """The same for a file that is not there. Raises FileExistsError if it is."""
    with _beside(file, content, mode, -1) as made:
        os.link(made, file)


@contextmanager
def _beside(file: Path, content: str | bytes, mode: int, group: int) -> Iterator[Path]:
    beside = file.with_name(f".{file.name.removeprefix('.')}.new")
    # One that a kill left behind, whoever may read that.
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content.encode() if isinstance(content, str) else content)
            opened.flush()
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, mode)
            # Without it a power cut may leave the new name with nothing in it.
            os.fsync(descriptor)
        yield beside
    finally:
        beside.unlink(missing_ok=True)
