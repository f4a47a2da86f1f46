"""Which revision a database has, and how it comes to this gateway's: under a lock, once.

A new database is made as the schema of today has it. Alembic is imported only if there is one to
migrate: its 10 MB and fifth of a second are not for every start.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from gateway.errors import GatewayError
from gateway.store.failures import forbidden, translated, unavailable
from gateway.store.kind import Kind

Opening = Literal["migrate", "create", "existing"]
"""`migrate`: make or upgrade the database (servers). `create`: make a missing one, refuse another
revision (commands that write). `existing`: refuse both (commands that read)."""

BUSY_SECONDS = 5.0
LOCK_SECONDS = 60.0
_LOCK_POLL_SECONDS = 0.05


def prepare(path: Path, opening: Opening, kind: Kind) -> None:
    """Leaves a database of this gateway's revision at `path`, or raises what to do.

    Raises the kind's own error and StorageFull.
    """
    with translated(path, kind):
        found = revision(path)
        if found == kind.revision:
            _check_access(path, kind)
            return
        if found is not None and (opening != "migrate" or found > kind.revision):
            raise other_revision(path, found, kind)
        if found is None and opening == "existing":
            raise unavailable(
                kind,
                f"There is no {kind.called} at {path}. Name the gateway's data directory with --data-dir or "
                f"GATEWAY_DATA_DIR, or {kind.first}.",
            )
        _upgrade(path, kind)


def uri(path: Path) -> str:
    """The name under which SQLite opens the file but never makes it: a lost database must be noticed."""
    return f"file:{quote(str(path.absolute()))}?mode=rw"


def revision(path: Path) -> str | None:
    """The revision of the database at `path`; None if there is none yet."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(uri(path), uri=True, timeout=BUSY_SECONDS)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if row is None else str(row[0])


def _check_access(path: Path, kind: Kind) -> None:
    # SQLite writes its log beside the file, also when it only reads.
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        raise forbidden(path, kind, "no access")


def other_revision(path: Path, found: str, kind: Kind) -> GatewayError:
    """The error for a database that this gateway does not work on, with the mend for each direction."""
    if found > kind.revision:
        mend = (
            "It was made by a newer gateway: use that version, or restore a backup from before the upgrade."
        )
    else:
        mend = (
            "It was made by an older gateway: start this version's server once (gateway serve), it migrates."
        )
    return unavailable(
        kind,
        f"The {kind.called} {path} has revision {found}, and this gateway works on {kind.revision}. {mend}",
    )


def _upgrade(path: Path, kind: Kind) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(path.with_name(path.name + ".lock"), kind):
        found = revision(path)
        if found == kind.revision:
            return
        _create_file(path)
        with closing(sqlite3.connect(uri(path), uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(path) as transaction:
            if found is None:
                kind.create(transaction)
            else:
                _run_alembic(transaction, kind)


@contextmanager
def _lock(path: Path, kind: Kind) -> Iterator[None]:
    """Holds the lock file; the kernel lets go of it when this process ends, however it ends."""
    deadline = time.monotonic() + LOCK_SECONDS
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise unavailable(
                    kind,
                    f"Another process has been migrating for {LOCK_SECONDS:g} s ({path}). End it first.",
                )
            time.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _create_file(path: Path) -> None:
    """An empty file that only its owner reads; SQLite gives its companions the same mode."""
    # An existing file is not opened here: closing any descriptor of it would drop SQLite's own locks.
    if path.exists():
        path.chmod(0o600)
    else:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def _transaction(path: Path) -> Iterator[Connection]:
    engine = create_engine(
        "sqlite://",
        poolclass=NullPool,
        creator=lambda: sqlite3.connect(uri(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None),
    )
    with engine.begin() as connection:
        # All or nothing: without it Python's driver would commit each table on its own.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


def _run_alembic(connection: Connection, kind: Kind) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(kind.migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
