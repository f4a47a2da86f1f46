"""`make restore FILE=…`: what a backup holds, put back; onto an empty machine, too."""

import os
import re
import sys
import tempfile
from pathlib import Path

from deploy.box import archive, backup, docker, images, secret_files, stack, variables, volume
from deploy.box.archive import Content
from deploy.box.places import Places
from deploy.local import session
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem
from deploy.local.progress import console, step

# Grafana has its password in its own volume, which no backup holds: with the old file nobody would get in.
KEPT_HERE = frozenset({"grafana-password"})


def of_box(places: Places, file: Path, *, agreed: bool) -> None:
    """Puts a backup back, starts the stack with it and prints how it is called.

    Raises Problem: before anything was changed if the file is not good or nobody agrees.
    """
    with archive.opened(_found(file), "box", places.backups) as content:
        _ask(content, "It replaces keys, usage, secrets and certificates of this box", agreed=agreed)
        if variables.load(places) and _keys_here(places):
            console().print("  What is here now is saved first.")
            backup.of_box(places, None)
        _put_checkout(places, content.folder / backup.CHECKOUT)
        found = stack.prepare(places)
        images.provide(places)
        _put_volumes(places, content)
        stack.start(places, found)
    print(stack.invitation(places, found))


def of_local(places: LocalPlaces, file: Path, *, agreed: bool) -> None:
    """The same for the local mode, which has to be down."""
    if session.running(places.pid_file, places.checkout):
        raise Problem("The stack is running: make down first.")
    with archive.opened(_found(file), "local", places.checkout / "backups") as content:
        _ask(content, f"It replaces {places.data}", agreed=agreed)
        places.data.mkdir(mode=0o700, exist_ok=True)
        with _packed(content.folder / "data") as stream:
            volume.put(places.data, stream)
    print("Put back. make up starts the stack with it.")


def _found(file: Path) -> Path:
    if not file.is_file():
        raise Problem(f"{file} is no file: name a backup with FILE=…")
    return file


def _ask(content: Content, what: str, *, agreed: bool) -> None:
    manifest = content.manifest
    size = f"{len(manifest.files)} files, {manifest.size_bytes / 1e6:.1f} MB"
    print(f"A backup of {manifest.made_at}, by version {manifest.gateway_version}: {size}. {what}.")
    if agreed or (sys.stdin.isatty() and input("Put it back? [y/N] ").strip().lower() in {"y", "yes"}):
        return
    raise Problem("nothing was changed. YES=1 puts it back without asking.")


def _keys_here(places: Places) -> bool:
    name = f"{variables.project(variables.load(places))}_{backup.DATA}"
    return docker.tried(places, "volume", "inspect", name).code == 0


def _put_checkout(places: Places, saved: Path) -> None:
    """Puts .env back if there is none, the operator's own files likewise, and the secrets in any case."""
    found = variables.load(places)
    # The group that may read secrets is this operator's, not that of the machine where the backup was made.
    group = int(found.get("SECRETS_GID") or os.getgid())
    if not found:
        text = (saved / ".env").read_text(encoding="utf-8")
        text = re.sub(r"^SECRETS_GID=.*$", f"SECRETS_GID={group}", text, flags=re.MULTILINE)
        secret_files.write(places.env_file, text, secret_files.PRIVATE, group)
    elif differing := _differing(found, saved / ".env"):
        console().print(f"  .env stays as it is here; the backup's differs in {', '.join(differing)}.")
    places.secrets.mkdir(mode=0o700, exist_ok=True)
    for file in sorted(file for file in saved.rglob("*") if file.is_file() and file.name != ".env"):
        target = places.checkout / file.relative_to(saved)
        if file.parent.name != places.secrets.name:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_bytes(file.read_bytes())
        elif file.name not in KEPT_HERE or not target.exists():
            secret_files.write(target, file.read_text(encoding="utf-8"), _mode(file.name), group)


def _differing(found: dict[str, str], other: Path) -> list[str]:
    saved = variables.parse(other.read_text(encoding="utf-8"))
    names = sorted({*saved, *found} - {"SECRETS_GID"})
    return [name for name in names if saved.get(name, "") != found.get(name, "")]


def _mode(name: str) -> int:
    if name in secret_files.PUBLIC:
        return 0o644
    return secret_files.PRIVATE if name == "first-key" else secret_files.FOR_CONTAINERS


def _put_volumes(places: Places, content: Content) -> None:
    names = [name for name in (backup.DATA, backup.CADDY) if (content.folder / name).is_dir()]
    services = docker.answer(places, "compose", "config", "--services").split()
    users = [service for service in ("caddy", "gateway") if service in services]
    with step("Putting keys, usage and certificates back"):
        docker.answer(places, "compose", "stop", *reversed(users), seconds=None)
        # Compose makes the volumes, with its labels and the owner that the image says, without a start.
        docker.answer(places, "compose", "up", "--no-start", "--no-build", "--no-deps", *users, seconds=None)
        for name in names:
            if name == backup.CADDY and "caddy" not in users:
                continue
            put_volume(places, name, content.folder / name)


def put_volume(places: Places, name: str, saved: Path, *, image: str | None = None) -> None:
    """Replaces what is in a volume that nobody uses just now. Raises Problem; then nothing is replaced."""
    with _packed(saved) as stream:
        docker.stream(places, *backup.container(places, name, image=image), "put", "/volume", source=stream)


def _packed(folder: Path) -> "tempfile._TemporaryFileWrapper[bytes]":
    stream = tempfile.NamedTemporaryFile(dir=folder.parent)  # noqa: SIM115  the caller closes it
    volume.pack(folder, stream)
    stream.seek(0)
    return stream
