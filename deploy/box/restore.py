"""`make restore FILE=…`: what a backup holds, put back; onto an empty machine, too."""

import os
import re
import sys
import tempfile
from pathlib import Path

from deploy.box import (
    archive,
    aside,
    backup,
    contents,
    docker,
    edited_env,
    images,
    secret_files,
    stack,
    variables,
    volume,
)
from deploy.box.archive import Content
from deploy.box.places import Places
from deploy.local import session, whole_file
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
        _suits_checkout(places, file, content)
        _ask(content, "It replaces keys, usage, secrets and certificates of this box", agreed=agreed)
        found = _put_all(places, content)
        stack.start(places, found)
    print(stack.invitation(places, found))


def _put_all(places: Places, content: Content) -> dict[str, str]:
    was_set_up = bool(variables.load(places))
    if was_set_up:
        # What is there is saved by the gateway's image, which a machine that was tidied up may lack.
        images.provide(places)
        aside.save(places)
    _put_checkout(places, content.folder / contents.CHECKOUT)
    found = stack.prepare(places)
    images.provide(places)
    if not was_set_up:
        aside.save(places)
    _put_volumes(places, content)
    return found


def _suits_checkout(places: Places, file: Path, content: Content) -> None:
    found = variables.load(places)
    if found:
        edited_env.check(places, found)
        return
    saved = content.folder / contents.ENV
    if not saved.exists():
        raise Problem(
            f"{file} holds no .env, and there is none here: nothing was changed. make up first, then restore."
        )
    contents.check_compose_files(file, variables.parse(saved.read_text(encoding="utf-8")), places.checkout)


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


def _put_checkout(places: Places, saved: Path) -> None:
    """Puts .env back if there is none, the operator's own files likewise, and the secrets in any case."""
    found = variables.load(places)
    # The group that may read secrets is this operator's, not that of the machine where the backup was made.
    group = variables.group(found) if found else os.getgid()
    if not found:
        text = (saved / ".env").read_text(encoding="utf-8")
        text = re.sub(r"^SECRETS_GID=.*$", f"SECRETS_GID={group}", text, flags=re.MULTILINE)
        whole_file.replace(places.env_file, text, mode=whole_file.PRIVATE, group=group)
    elif differing := _differing(found, saved / ".env"):
        console().print(f"  .env stays as it is here; the backup's differs in {', '.join(differing)}.")
    secret_files.make_folder(places)
    for file in sorted(file for file in saved.rglob("*") if file.is_file() and file != saved / ".env"):
        target = places.checkout / file.relative_to(saved)
        if file.parent != saved / contents.SECRETS:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_bytes(file.read_bytes())
        elif file.name not in KEPT_HERE or not target.exists():
            whole_file.replace(target, file.read_bytes(), mode=_mode(file.name), group=group)


def _differing(found: dict[str, str], other: Path) -> list[str]:
    if not other.exists():
        return []
    saved = variables.parse(other.read_text(encoding="utf-8"))
    names = sorted({*saved, *found} - {"SECRETS_GID"})
    return [name for name in names if saved.get(name, "") != found.get(name, "")]


def _mode(name: str) -> int:
    if name in secret_files.PUBLIC:
        return whole_file.PUBLIC
    return whole_file.PRIVATE if name == "first-key" else secret_files.FOR_CONTAINERS


def _put_volumes(places: Places, content: Content) -> None:
    names = [name for name in (contents.DATA, contents.CADDY) if (content.folder / name).is_dir()]
    services = docker.answer(places, "compose", "config", "--services").split()
    users = [service for service in ("caddy", "gateway") if service in services]
    with step("Putting keys, usage and certificates back"):
        docker.answer(places, "compose", "stop", *reversed(users), seconds=None)
        # Compose makes the volumes, with its labels and the owner that the image says, without a start.
        docker.answer(places, "compose", "up", "--no-start", "--no-build", "--no-deps", *users, seconds=None)
        for name in names:
            if name == contents.CADDY and "caddy" not in users:
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
