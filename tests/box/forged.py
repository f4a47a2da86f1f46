"""Backups that were tampered with, and what is said of them."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.box import archive
from deploy.local.problem import Problem
from tests.box.boxes import Box

DATABASE = "gateway-data/gateway.db"


def saved(box: Box) -> Path:
    """A backup of it."""
    file = box.folder.parent / "saved.tar.gz"
    done = box.command("backup", FILE=str(file))
    assert done.returncode == 0, done.stderr
    return file


def forged(
    file: Path, changes: Mapping[str, bytes | None] | None = None, manifest: Mapping[str, Any] | None = None
) -> Path:
    """A backup with other files (None: without them) and a manifest that goes with them, or says more."""
    target = file.with_name("forged.tar.gz")
    with tarfile.open(file) as old:
        held = {name: (old.extractfile(name) or io.BytesIO()).read() for name in old.getnames()}
    said = json.loads(held.pop("manifest.json"))
    if changes and "checkout/.env" in changes:
        # Another .env does not name the files that this one names.
        held = {name: text for name, text in held.items() if not name.startswith("checkout/deploy/")}
    files = {name: text for name, text in {**held, **(changes or {})}.items() if text is not None}
    said["files"] = {
        name: {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()} for name, text in files.items()
    }
    text = json.dumps({**said, **(manifest or {})}).encode()
    return packed(target, {"manifest.json": text, **files})


def packed(target: Path, files: Mapping[str, bytes]) -> Path:
    """A tar.gz of them, in this order."""
    with tarfile.open(target, "w:gz") as new:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o600
            new.addfile(member, io.BytesIO(text))
    return target


def refusal(file: Path, folder: Path) -> str:
    """Why a file is not opened; that nothing of it is left is part of that."""
    with pytest.raises(Problem) as caught, archive.opened(file, "box", folder / "work"):
        pass
    assert list((folder / "work").iterdir()) == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def env(**changes: str) -> bytes:
    """A text of .env."""
    return "".join(f"{name}={value}\n" for name, value in changes.items()).encode()
