"""The file that `make backup` writes: a tar.gz, mode 0600, whose first member says what else is in it.

`manifest.json` names versions, the revision of each database, and every file with size and SHA-256. Where
the files come from and go to is said by `backup` and `restore`.
"""

import hashlib
import json
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from deploy.box import volume
from deploy.local.problem import Problem
from gateway import __version__
from gateway.store import migrate, schema

FORMAT = 1
MANIFEST = "manifest.json"
Mode = Literal["box", "local"]


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself. `revisions` are those of the databases by their name in the backup."""

    mode: Mode
    made_at: str
    gateway_version: str
    revisions: dict[str, str]
    images: dict[str, str]
    files: dict[str, dict[str, Any]]
    format: int = FORMAT

    @property
    def size_bytes(self) -> int:
        """Of all files, unpacked."""
        return sum(int(entry["bytes"]) for entry in self.files.values())


@dataclass(frozen=True)
class Content:
    """A backup that was checked and lies unpacked in a folder."""

    manifest: Manifest
    folder: Path


@contextmanager
def workspace(beside: Path) -> Iterator[Path]:
    """A private folder on the same disk, gone afterwards: what is in it are secrets."""
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".work-", dir=beside) as name:
        yield Path(name)


def write(folder: Path, target: Path, mode: Mode, images: dict[str, str]) -> Manifest:
    """Packs a folder into a new file; it appears under its name once it is whole. Raises FileExistsError."""
    manifest = _describe(folder, mode, images)
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as opened:
        with tarfile.open(fileobj=opened, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            described = folder / MANIFEST
            described.write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
            for name in [MANIFEST, *manifest.files]:
                tar.add(folder / name, name, recursive=False)
        opened.flush()
        os.fsync(opened.fileno())
    try:
        os.link(beside, target)
    finally:
        beside.unlink()
    return manifest


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
            with tarfile.open(file, mode="r:gz") as tar:
                manifest = _manifest(file, tar)
                _suits(file, manifest, mode)
                _unpack(file, tar, manifest, folder)
        except (OSError, EOFError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
            raise Problem(f"{file} is no backup that can be read ({error}): nothing was changed.") from error
        yield Content(manifest, folder)


def mode_of(file: Path) -> str:
    """The mode that a backup says it was made in; empty for a file that does not say."""
    try:
        with tarfile.open(file, mode="r:gz") as tar:
            return _manifest(file, tar).mode
    except (OSError, EOFError, tarfile.TarError, ValueError, KeyError, TypeError, Problem):
        return ""


def _manifest(file: Path, tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    reader = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    if reader is None:
        raise Problem(f"{file} is not a backup of this gateway: it does not begin with {MANIFEST}.")
    said: dict[str, Any] = json.load(reader)
    if said.get("format") != FORMAT:
        raise Problem(
            f"{file} has format {said.get('format')}, and this version reads {FORMAT}: use a newer one."
        )
    return Manifest(**said)


def _suits(file: Path, manifest: Manifest, mode: Mode) -> None:
    if manifest.mode != mode:
        names = {"box": "the compose stack (MODE=box)", "local": "the local mode (MODE=local)"}
        raise Problem(f"{file} is of {names[manifest.mode]}, and here is {names[mode]}: restore it there.")
    for name, revision in manifest.revisions.items():
        if revision > schema.REVISION:
            raise Problem(
                f"{file} is of a newer gateway ({manifest.gateway_version}): its {PurePosixPath(name).name} "
                f"has revision {revision}, this one works on {schema.REVISION}. Upgrade the checkout first."
            )


def _unpack(file: Path, tar: tarfile.TarFile, manifest: Manifest, folder: Path) -> None:
    for member in tar:
        if member.name != MANIFEST and (not member.isfile() or member.name not in manifest.files):
            raise Problem(
                f"{file} holds {member.name}, of which its manifest does not know: nothing was changed."
            )
        volume.extract(tar, member, folder)
    for name, entry in manifest.files.items():
        if not (folder / name).is_file() or _entry(folder / name) != entry:
            raise Problem(f"{file} is damaged: {name} is not as its manifest says. Nothing was changed.")
