"""How a key database comes to the gateway's revision, and when it is left alone."""

import asyncio
import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from gateway.errors import KeyStoreUnavailable
from gateway.store import Opening, Store, migrate, schema

MIGRATIONS = Path(migrate.__file__).parent / "migrations"
REVISIONS = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
OPEN = "import sys, asyncio, pathlib; from gateway.store import Store\n" + (
    "async def main():\n    async with Store(pathlib.Path(sys.argv[1])): pass\nasyncio.run(main())"
)
# All that is imported late comes first: nobody may not read the interpreter's own files everywhere.
AS_NOBODY = (
    "import aiosqlite, concurrent.futures.thread, os; from gateway.store import Store\n"
    "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
) + OPEN


def database(data_dir: Path, statement: str) -> list[tuple[object, ...]]:
    """What SQLite itself answers on the database of a data directory."""
    with closing(sqlite3.connect(data_dir / "gateway.db")) as connection, connection:
        return connection.execute(statement).fetchall()


async def opened(data_dir: Path, opening: Opening = "migrate") -> None:
    async with Store(data_dir, opening):
        pass


def migrate_to(data_dir: Path, revision: str) -> None:
    """A database as a gateway of that revision left it."""
    engine = create_engine(f"sqlite:///{data_dir / 'gateway.db'}")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def insert_key(data_dir: Path) -> None:
    """A key with the columns of the first revision."""
    database(
        data_dir,
        "INSERT INTO keys"
        " (id, name, rpm, priority, weight, cache_group, defaults, force, metadata, created_at)"
        " VALUES ('abcdefghijkl', 'old', -1, 'batch', 2, 'g', '{\"top_p\": 1}', '{}', '{}',"
        " '2026-01-02 03:04:05')",
    )


async def test_a_new_data_directory_gets_a_database_that_only_its_owner_reads(tmp_path: Path) -> None:
    """Directory and files are made as needed: 0700 and 0600, SQLite's companions included."""
    data_dir = tmp_path / "a" / "data"
    async with Store(data_dir) as store, store.write() as writer:
        assert await writer.version() == 0
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir()}
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert modes.keys() >= {"gateway.db", "gateway.db-wal", "gateway.db-shm"}
    assert set(modes.values()) == {0o600}
    assert database(data_dir, "SELECT version_num FROM alembic_version") == [(schema.REVISION,)]
    assert database(data_dir, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_migrations_lead_to_the_tables_of_a_new_database(tmp_path: Path, revision: str) -> None:
    """From every revision on: not a character of a table or an index differs."""
    every_table = "SELECT name, sql FROM sqlite_master ORDER BY name"
    migrated, new = tmp_path / "migrated", tmp_path / "new"
    migrated.mkdir()
    migrate_to(migrated, revision)
    await opened(migrated)
    await opened(new)
    assert database(migrated, every_table) == database(new, every_table)
    assert database(migrated, "SELECT * FROM alembic_version") == [(schema.REVISION,)]
    assert database(new, "SELECT * FROM alembic_version") == [(schema.REVISION,)]


def test_revisions_are_growing_numbers_and_the_code_names_the_last() -> None:
    """Whether a database is newer or older is read off the revision's name, without Alembic."""
    assert sorted(REVISIONS) == REVISIONS
    assert all(len(revision) == 4 and revision.isdigit() for revision in REVISIONS)
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [schema.REVISION]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_database_of_every_revision_opens_with_its_keys(tmp_path: Path, revision: str) -> None:
    """What an older gateway stored is there after the upgrade, each value with its meaning."""
    migrate_to(tmp_path, revision)
    insert_key(tmp_path)
    async with Store(tmp_path) as store, store.read() as reader:
        row = await reader.key("abcdefghijkl")
    assert row is not None
    assert (row["rpm"], row["tpm"], row["defaults"]) == ("unlimited", None, {"top_p": 1})
    assert row["created_at"].isoformat() == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize("existing", [False, True])
def test_nothing_to_migrate_needs_no_alembic(tmp_path: Path, existing: bool) -> None:
    """A start on a new or an up-to-date database spares its time and its memory."""
    if existing:
        asyncio.run(opened(tmp_path))
    check = OPEN + "\nassert not any(name.startswith('alembic') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", check, str(tmp_path)], check=True, timeout=120)


def test_processes_that_migrate_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """All of them wait for the lock, and one after the other finds the database as it should be."""
    tmp_path.joinpath("gateway.db.lock").touch()
    with tmp_path.joinpath("gateway.db.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        opening = [subprocess.Popen([sys.executable, "-c", OPEN, str(tmp_path)]) for _ in range(2)]
        with pytest.raises(subprocess.TimeoutExpired):
            opening[0].wait(1.5)
        assert not tmp_path.joinpath("gateway.db").exists()
    assert [process.wait(120) for process in opening] == [0, 0]
    assert database(tmp_path, "SELECT count(*) FROM alembic_version") == [(1,)]


async def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """All of it or nothing: the tables made before the failure are gone again."""
    database(tmp_path, "CREATE TABLE secrets (mine TEXT)")
    with pytest.raises(KeyStoreUnavailable, match="secrets already exists"):
        await opened(tmp_path)
    assert database(tmp_path, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("secrets",)]


@pytest.mark.parametrize("opening", ["migrate", "create", "existing"])
async def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path, opening: Opening) -> None:
    """The message names both revisions and what to do."""
    await opened(tmp_path)
    database(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(KeyStoreUnavailable, match=r"9999.*newer gateway: use that version"):
        await opened(tmp_path, opening)
    assert database(tmp_path, "SELECT version_num FROM alembic_version") == [("9999",)]


@pytest.mark.parametrize("opening", ["create", "existing"])
async def test_commands_do_not_migrate_an_older_database(tmp_path: Path, opening: Opening) -> None:
    """Under a server that runs, that would pull the tables from under its feet."""
    await opened(tmp_path)
    database(tmp_path, "UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(KeyStoreUnavailable, match=r"0000.*gateway serve"):
        await opened(tmp_path, opening)


async def test_a_command_that_reads_makes_no_database(tmp_path: Path) -> None:
    """In a wrong directory it says so instead of listing no keys."""
    with pytest.raises(KeyStoreUnavailable, match="--data-dir"):
        await opened(tmp_path / "wrong", "existing")
    assert not (tmp_path / "wrong").exists()


async def test_a_command_that_writes_makes_a_missing_database(tmp_path: Path) -> None:
    """A key can be created before the server's first start."""
    await opened(tmp_path, "create")
    assert database(tmp_path, "SELECT version_num FROM alembic_version") == [(schema.REVISION,)]


@pytest.mark.parametrize(("directory_mode", "file_mode"), [(0o555, None), (0o555, 0o666), (0o777, 0o444)])
def test_what_may_not_be_written_is_named(directory_mode: int, file_mode: int | None) -> None:
    """Directory or file, new or not: before anything is served, with the user and the mend."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        data_dir.mkdir()
        if file_mode is not None:
            asyncio.run(opened(data_dir))
            (data_dir / "gateway.db").chmod(file_mode)
        data_dir.chmod(directory_mode)
        Path(folder).chmod(0o755)
        run = [sys.executable, "-c", AS_NOBODY, str(data_dir)]
        told = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
        data_dir.chmod(0o755)
    assert told.returncode == 1
    uid = os.geteuid() or 65534
    assert f"User {uid} may not read and write the key database {data_dir}/gateway.db" in told.stderr
    assert "GATEWAY_DATA_DIR" in told.stderr


async def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    """Not a traceback about a path that nobody wrote."""
    (tmp_path / "data").touch()
    with pytest.raises(KeyStoreUnavailable, match="data is not a directory"):
        await opened(tmp_path / "data")


async def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    """A start says that a backup is needed, and does not overwrite what may still be saved."""
    (tmp_path / "gateway.db").write_bytes(b"no database" * 1000)
    with pytest.raises(KeyStoreUnavailable, match=r"is damaged .* restore a backup"):
        await opened(tmp_path)
    assert (tmp_path / "gateway.db").read_bytes() == b"no database" * 1000
