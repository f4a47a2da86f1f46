"""Reads a folder of live data out as a tar stream, and puts one back whole. A program of its own, too.

In a container it is the gateway image's Python that runs this file's text, so it uses the standard library
alone: `python3 -c TEXT save|raw|put FOLDER`, with the tar on standard output or input.
"""

import os
import shutil
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO

SQLITE = b"SQLite format 3\0"
WAL = b"\x02\x02"  # bytes 18 and 19 of a database whose journal is a write-ahead log
COMPANIONS = ("-wal", "-shm", "-journal")
BESIDE = ".backup-"
# What is made anew at each start, or by its owner when it is missed.
LEFT_OUT = ("run", "log", "locks", ".backup-save", ".backup-put")


def save(folder: Path, stream: IO[bytes]) -> None:
    """Writes all files below a folder as a tar stream; databases as they are at one moment, while in use."""
    beside = folder / f"{BESIDE}save"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(mode=0o700)
    try:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for file in sorted(_files(folder)):
                source = _moment(file, beside / "database") if _is_database(file) else file
                tar.add(source, str(file.relative_to(folder)), recursive=False)
    finally:
        shutil.rmtree(beside)


def _files(folder: Path) -> list[Path]:
    inner = [Path(parent) / name for parent, names, files in os.walk(folder) for name in files]
    return [
        file
        for file in inner
        if file.is_file()
        and not file.is_symlink()
        and not {*file.relative_to(folder).parts} & {*LEFT_OUT}
        and not file.name.endswith((*COMPANIONS, ".lock"))
    ]


def _is_database(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(SQLITE)) == SQLITE


def _moment(file: Path, target: Path) -> Path:
    """A copy of a database in one transaction, with the kind of journal that it has."""
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))
    # VACUUM INTO forgets the kind of journal, and the gateway only sets it for a database that it makes.
    if file.read_bytes()[18:20] == WAL:
        with closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA journal_mode = WAL")
    target.chmod(file.stat().st_mode & 0o777)
    return target


def put(folder: Path, stream: IO[bytes]) -> None:
    """Replaces what is in a folder by what a tar stream holds, once all of that has arrived.

    Nobody else may use the folder meanwhile. A stream that breaks off changes nothing.
    """
    beside = folder / f"{BESIDE}put"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(mode=0o700)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                extract(tar, member, beside)
        os.sync()
        for old in folder.iterdir():
            if old == beside or old.name in LEFT_OUT:
                continue
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        for new in beside.iterdir():
            new.rename(folder / new.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Writes one regular file of a tar below a folder, with its mode. Raises ValueError for anything else."""
    # By hand: the safe filters of tarfile are younger than some Pythons that this runs on.
    name = PurePosixPath(member.name)
    reader = tar.extractfile(member) if member.isfile() else None
    if reader is None or name.is_absolute() or ".." in name.parts:
        raise ValueError(f"{member.name} is no file that could be put there")
    target = folder / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as written:
        shutil.copyfileobj(reader, written)
    target.chmod(member.mode & 0o777)


def pack(folder: Path, stream: IO[bytes]) -> None:
    """Writes all files of a folder that nobody uses, as they are, as the tar stream that `put` takes."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            tar.add(file, str(file.relative_to(folder)), recursive=False)


if __name__ == "__main__":
    if sys.argv[1] == "save":
        save(Path(sys.argv[2]), sys.stdout.buffer)
    elif sys.argv[1] == "raw":
        pack(Path(sys.argv[2]), sys.stdout.buffer)
    else:
        put(Path(sys.argv[2]), sys.stdin.buffer)
