"""The file that `make backup` writes: a tar.gz, mode 0600, whose first member says what else is in it.

`manifest.json` names versions, the revision of each database, and every file with size and SHA-256. Where
the files come from and go to is said by `backup` and `restore`.
"""

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.box import contents, volume
from deploy.box import manifest as manifests
from deploy.box.manifest import Manifest, Mode
from deploy.local.problem import Problem
from gateway import __version__
from gateway.store import migrate

MANIFEST = manifests.NAME
# What a file that is none, is cut, or was made to do harm brings up while it is read.
UNREADABLE = (OSError, EOFError, tarfile.TarError, ValueError, RecursionError, OverflowError, zlib.error)
# Unpacked once, and packed again for the volume, beside each other.
COPIES = 2


@dataclass(frozen=True)
class Content:
    """A backup that was checked and lies unpacked in a folder."""

    manifest: Manifest
    folder: Path


@contextmanager
def workspace(beside: Path) -> Iterator[Path]:
    """A private folder on the same disk, gone afterwards: what is in it are secrets.

    Raises Problem if none can be made there.
    """
    try:
        beside.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=".work-", dir=beside)
    except OSError as error:
        raise Problem(
            f"{beside} takes no files ({error.strerror}): mend that, or free some space."
        ) from error
    with made as name:
        yield Path(name)


def write(folder: Path, target: Path, mode: Mode, images: dict[str, str]) -> Manifest:
    """Packs a folder into a new file; it appears under its name once it is whole. Raises FileExistsError."""
    manifest = _describe(folder, mode, images)
    described = folder / MANIFEST
    described.write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
    if described.stat().st_size > manifests.LIMIT_BYTES:
        raise Problem(
            f"There are {len(manifest.files)} files, more than a backup holds: remove what is not needed."
        )
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    try:
        _pack(folder, [MANIFEST, *manifest.files], beside)
        _name(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return manifest


def _pack(folder: Path, names: list[str], file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as opened:
        with tarfile.open(fileobj=opened, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            for name in names:
                tar.add(folder / name, name, recursive=False)
        opened.flush()
        os.fsync(opened.fileno())


def _name(beside: Path, target: Path) -> None:
    """Gives a whole file its name, and takes it from nobody. Raises FileExistsError."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise
    except OSError:
        # FAT and exFAT, as sticks have them, know no second name for a file.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        beside.replace(target)


def _describe(folder: Path, mode: Mode, images: dict[str, str]) -> Manifest:
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
    return Manifest(
        mode=mode,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        gateway_version=__version__,
        revisions={name: found for name, file in files.items() if (found := _revision(file))},
        images=images,
        files={name: _entry(file) for name, file in files.items()},
    )


def _revision(file: Path) -> str | None:
    if file.suffix != ".db":
        return None
    try:
        return migrate.revision(file)
    except sqlite3.DatabaseError as error:
        raise Problem(
            f"The copy of {file.name} is damaged ({error}): the database itself may be, too."
        ) from error


def _entry(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        return {"bytes": file.stat().st_size, "sha256": hashlib.file_digest(opened, "sha256").hexdigest()}


@contextmanager
def opened(file: Path, mode: Mode, beside: Path) -> Iterator[Content]:
    """A backup, checked whole and unpacked for a while.

    Raises Problem if it is none, is damaged, was made in another mode, or by a newer gateway.
    """
    with workspace(beside) as folder:
        try:
            manifest = _read(file, mode, folder)
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            raise Problem(f"{file} is no backup that can be read ({error}): nothing was changed.") from error
        yield Content(manifest, folder)


def mode_of(file: Path) -> str:
    """The mode that a backup says it was made in; empty for a file that does not say."""
    try:
        with tarfile.open(file, mode="r:gz") as tar:
            return _manifest(file, tar).mode
    except (*UNREADABLE, Problem):
        return ""


def _read(file: Path, mode: Mode, folder: Path) -> Manifest:
    with tarfile.open(file, mode="r:gz") as tar:
        manifest = _manifest(file, tar)
        _suits(file, manifest, mode)
        _has_room(file, manifest, folder)
        _unpack(file, tar, manifest, folder)
    contents.check(file, manifest, folder)
    return manifest


def _manifest(file: Path, tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    reader = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    if first is None or reader is None:
        raise Problem(f"{file} is not a backup of this gateway: it does not begin with {MANIFEST}.")
    if first.size > manifests.LIMIT_BYTES or first.issparse():
        raise Problem(f"{file} has a {MANIFEST} of {first.size} bytes, and no backup has more than 1 MiB.")
    try:
        return manifests.parse(reader.read())
    except ValueError as error:
        raise Problem(f"{file} is no backup that can be read ({error}): nothing was changed.") from error


def _suits(file: Path, manifest: Manifest, mode: Mode) -> None:
    if manifest.mode != mode:
        names = {"box": "the compose stack (MODE=box)", "local": "the local mode (MODE=local)"}
        raise Problem(f"{file} is of {names[manifest.mode]}, and here is {names[mode]}: restore it there.")
    contents.check_names(file, manifest)
    for name, revision in manifest.revisions.items():
        contents.check_revision(file, name, revision, manifest.gateway_version)


def _has_room(file: Path, manifest: Manifest, folder: Path) -> None:
    needed, free = COPIES * manifest.size_bytes, shutil.disk_usage(folder).free
    if needed > free:
        raise Problem(
            f"{file} needs {needed / 1e9:.1f} GB to be unpacked, and the disk of {folder.parent} has "
            f"{free / 1e9:.1f} free: nothing was changed. Free some space."
        )


def _unpack(file: Path, tar: tarfile.TarFile, manifest: Manifest, folder: Path) -> None:
    for member in tar:
        if member.name == MANIFEST and member.offset == 0:
            continue
        entry = manifest.files.get(member.name)
        # A sparse member is small in the file and as large as it likes on the disk.
        if entry is None or not member.isfile() or member.issparse() or member.size != entry["bytes"]:
            raise Problem(
                f"{file} holds {member.name}, of which its manifest does not know: nothing was changed."
            )
        volume.extract(tar, member, folder)
    for name, entry in manifest.files.items():
        if not (folder / name).is_file() or _entry(folder / name) != entry:
            raise Problem(f"{file} is damaged: {name} is not as its manifest says. Nothing was changed.")
