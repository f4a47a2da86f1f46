"""What a backup may hold: which files, and databases that are whole and of a revision known here.

A backup decides what is written into the checkout, so only what `make backup` puts there is let in.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from deploy.box import variables, volume
from deploy.box.manifest import Manifest
from deploy.local.problem import Problem
from gateway.store import migrate
from gateway.store.schema import KEYS
from gateway.store.usage_schema import USAGE

DATA, CADDY, CHECKOUT = "gateway-data", "caddy-data", "checkout"
ENV, SECRETS = f"{CHECKOUT}/.env", "secrets"
DATABASE = f"{DATA}/{KEYS.file_name}"
REVISIONS = {kind.file_name: kind.revision for kind in (KEYS, USAGE)}
FOLDERS = {"box": (DATA, CADDY, CHECKOUT), "local": ("data",)}
IN_USE = ("PROFILE_FILE", "GATEWAY_CONFIG_FILE")
OWN_FILES = (*IN_USE, "BACK_PROFILE_FILE", "BACK_GATEWAY_CONFIG_FILE")
OWN_FOLDER, OWN_ENDINGS = "deploy", (".yaml", ".toml")
REVISION = re.compile(r"\d{4}", re.ASCII)


def check_names(file: Path, manifest: Manifest) -> None:
    """Looks at what a backup wants to put where, before it is unpacked. Raises Problem."""
    for name in manifest.files:
        first, *rest = PurePosixPath(name).parts
        if (
            first not in FOLDERS[manifest.mode]
            or not rest
            or (first != CHECKOUT and {*rest} & {*volume.LEFT_OUT})
        ):
            raise Problem(f"{file} holds {name}, which no backup puts there: nothing was changed.")


def check(file: Path, manifest: Manifest, folder: Path) -> None:
    """Looks at what was unpacked: the files of the checkout and the databases. Raises Problem."""
    if manifest.mode == "box" and DATABASE not in manifest.files:
        raise Problem(f"{file} holds no {DATABASE}, so no keys: nothing was changed. Take another backup.")
    env = _env(file, folder / ENV)
    own = {str(name) for name in own_files(env)}
    for name in manifest.files:
        path = PurePosixPath(name)
        if path.parts[0] == CHECKOUT and not _is_ours(path.relative_to(CHECKOUT), own):
            raise Problem(
                f"{file} holds {name}, and of a checkout only .env, secrets/ and what .env names of "
                f"{OWN_FOLDER}/ are put back: nothing was changed. Do not trust this file."
            )
        if path.suffix == ".db":
            _check_database(file, name, folder / name)


def _env(file: Path, env: Path) -> dict[str, str]:
    if not env.exists():
        return {}
    try:
        return variables.parse(env.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise Problem(f"{file} holds an .env that is not UTF-8: nothing was changed.") from error


def own_files(env: Mapping[str, str]) -> list[PurePosixPath]:
    """The files of the operator's own that .env names and that a backup holds: those below deploy/."""
    named = (PurePosixPath(env[name]) for name in OWN_FILES if env.get(name))
    return [
        path
        for path in named
        if path.parts[:1] == (OWN_FOLDER,) and ".." not in path.parts and path.suffix in OWN_ENDINGS
    ]


def _is_ours(path: PurePosixPath, own: set[str]) -> bool:
    if path.parts[0] == SECRETS:
        return len(path.parts) == 2 and not path.name.startswith(".")
    return str(path) in {".env", *own}


def check_compose_files(file: Path, env: Mapping[str, str], checkout: Path) -> None:
    """Raises Problem if the .env of a backup names a part of the stack that this checkout does not have."""
    for name in env.get("COMPOSE_FILE", "").split(":"):
        path = checkout / name
        if not path.is_file() or not path.resolve().is_relative_to(checkout.resolve()):
            raise Problem(
                f"the .env in {file} names {name or 'nothing'!r} in COMPOSE_FILE, which is no file of this "
                "checkout: nothing was changed. Put your own overlay there first, or do not trust the file."
            )


def _check_database(file: Path, name: str, database: Path) -> None:
    try:
        # Nobody else has it, so SQLite needs no companions: none shall be left beside it.
        source = f"file:{quote(str(database.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(source, uri=True)) as connection:
            [said] = connection.execute("PRAGMA quick_check(1)").fetchone()
        found = migrate.revision(database)
    except sqlite3.DatabaseError as error:
        said, found = str(error), None
    if said != "ok":
        raise Problem(f"{file} holds a damaged {name} ({said}): nothing was changed. Take another backup.")
    if found is None and PurePosixPath(name).name not in REVISIONS:
        return
    if not REVISION.fullmatch(found or ""):
        raise Problem(f"{file}: {name} is no database of the gateway: nothing was changed.")
    check_revision(file, name, found or "", "")


def check_revision(file: Path, name: str, revision: str, version: str) -> None:
    """Raises Problem if a database is of a later revision than this gateway's."""
    database = PurePosixPath(name).name
    known = REVISIONS.get(database, KEYS.revision)
    if revision > known:
        of = f" ({version})" if version else ""
        raise Problem(
            f"{file} is of a newer gateway{of}: its {database} "
            f"has revision {revision}, this one works on {known}. Upgrade the checkout first."
        )
