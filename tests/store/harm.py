"""What can happen to a database while a server runs. Each harm answers what mends it."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def delete(path: Path) -> Callable[[], object]:
    kept = path.read_bytes()
    for companion in path.parent.glob(f"{path.name}*"):
        companion.unlink()
    return lambda: path.write_bytes(kept)


def rename(path: Path) -> Callable[[], object]:
    path.rename(path.with_name("away.db"))
    return lambda: path.with_name("away.db").rename(path)


def rename_directory(path: Path) -> Callable[[], object]:
    away = path.parent.with_name("away")
    path.parent.rename(away)
    return lambda: away.rename(path.parent)


def overwrite(path: Path) -> Callable[[], object]:
    kept = path.read_bytes()
    path.write_bytes(b"garbage!" * (len(kept) // 8))
    return lambda: path.write_bytes(kept)


def empty(path: Path) -> Callable[[], object]:
    kept = path.read_bytes()
    path.write_bytes(b"")
    return lambda: path.write_bytes(kept)


def replace_by_directory(path: Path) -> Callable[[], object]:
    path.rename(path.with_name("away.db"))
    path.mkdir()

    def mend() -> None:
        path.rmdir()
        path.with_name("away.db").rename(path)

    return mend


def other_revision(path: Path) -> Callable[[], object]:
    def stamp(revision: str) -> None:
        changed = path.with_name("changed.db")
        shutil.copyfile(path, changed)
        with closing(sqlite3.connect(changed)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        changed.rename(path)

    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    stamp("9999")
    return lambda: stamp(before)


def lock(path: Path) -> Callable[[], object]:
    """Another process holds the file exclusively, which it can only with a copy in its place."""
    locked = path.with_name("locked.db")
    shutil.copyfile(path, locked)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(locked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    locked.rename(path)

    def mend() -> None:
        holder.communicate(timeout=60)

    return mend
