"""What is here before a restore replaces it: as a backup, or as raw files where a backup cannot be made."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from rich.markup import escape

from deploy.box import backup, contents, docker, variables
from deploy.box.places import Places
from deploy.local.problem import Problem
from deploy.local.progress import console


def save(places: Places) -> None:
    """Saves what is here, if anything is. A restore is what mends damaged data: that must not stop it.

    Raises OSError if the disk of backups/ does not take it.
    """
    if not _there(places, contents.DATA):
        return
    console().print("  What is here now is saved first.")
    try:
        backup.of_box(places, None)
    except Problem as problem:
        _tell(f"What is here cannot be saved as a backup: {problem}")
        _raw(places)


def _there(places: Places, name: str) -> bool:
    volume = f"{variables.project(variables.load(places))}_{name}"
    return docker.tried(places, "volume", "inspect", volume).code == 0


def _raw(places: Places) -> None:
    """Copies .env, secrets/ and the volumes as they are; says what could not be copied, and goes on."""
    folder = places.backups / f"before-restore-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder.mkdir(mode=0o700, parents=True)
    shutil.copy2(places.env_file, folder)
    if places.secrets.is_dir():
        shutil.copytree(places.secrets, folder / contents.SECRETS, symlinks=True)
    # Nobody writes while it is copied: these files have no moment of their own.
    docker.tried(places, "compose", "stop", "caddy", "gateway", seconds=None)
    for name in (contents.DATA, contents.CADDY):
        if _there(places, name):
            _copy(places, name, folder / f"{name}.tar")
    console().print(f"  Its raw files are in {escape(str(folder))}; remove that once you do not need it.")


def _copy(places: Places, name: str, target: Path) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        try:
            docker.stream(places, *backup.container(places, name), "raw", "/volume", target=stream)
        except Problem as problem:
            _tell(f"The volume {name} cannot be copied either, not all of it is in {target}: {problem}")


def _tell(text: str) -> None:
    console().print(f"[yellow]![/yellow] {escape(text)}")
