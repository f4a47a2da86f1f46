"""How a usage database comes to the gateway's revision: as the key database does, under its own name."""

import asyncio
import fcntl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from gateway.errors import UsageStoreUnavailable
from gateway.store import Opening, Store, UsageStore
from gateway.store.usage_schema import USAGE
from tests.store.usage_rows import NOON, database, row

REVISIONS = [script.revision for script in ScriptDirectory(str(USAGE.migrations)).walk_revisions()][::-1]
OPEN = "import sys, asyncio, pathlib; from gateway.store import UsageStore\n" + (
    "async def main():\n    async with UsageStore(pathlib.Path(sys.argv[1])): pass\nasyncio.run(main())"
)


async def opened(data_dir: Path, opening: Opening = "migrate") -> None:
    async with UsageStore(data_dir, opening):
        pass


def migrate_to(data_dir: Path, revision: str) -> None:
    """A database as a gateway of that revision left it."""
    data_dir.mkdir()
    engine = create_engine(f"sqlite:///{data_dir / 'usage.db'}")
    config = Config()
    config.set_main_option("script_location", str(USAGE.migrations))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def modes_in(data_dir: Path) -> dict[str, int]:
    """Who may read which file."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir()}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_migrations_lead_to_the_tables_of_a_new_database(tmp_path: Path, revision: str) -> None:
    """From every revision on: not a character of a table or an index differs."""
    migrate_to(tmp_path / "migrated", revision)
    await opened(tmp_path / "migrated")
    await opened(tmp_path / "new")
    for what in ("SELECT name, sql FROM sqlite_master ORDER BY name", "SELECT * FROM alembic_version"):
        migrated, new = (database(tmp_path / name / "usage.db", what) for name in ("migrated", "new"))
        assert migrated == new


def test_revisions_are_growing_numbers_and_the_code_names_the_last() -> None:
    """Whether a database is newer or older is read off the revision's name, without Alembic."""
    assert sorted(REVISIONS) == REVISIONS
    assert all(len(revision) == 4 and revision.isdigit() for revision in REVISIONS)
    assert ScriptDirectory(str(USAGE.migrations)).get_heads() == [USAGE.revision]


async def test_it_is_a_file_of_its_own_that_only_its_owner_reads(tmp_path: Path) -> None:
    """Beside the keys, with its log; a commit of it waits for no disk."""
    async with Store(tmp_path), UsageStore(tmp_path) as store:
        await store.write([row(NOON)])
        modes = modes_in(tmp_path)
        async with store._database.reading() as (connection, _):
            assert (await connection.exec_driver_sql("PRAGMA synchronous")).scalar() == 1
    assert modes.keys() >= {"gateway.db", "usage.db", "usage.db-wal"}
    assert set(modes.values()) == {0o600}
    assert database(tmp_path / "usage.db", "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize(
    ("revision", "opening", "told"),
    [
        ("9999", "migrate", r"usage database .*usage\.db has revision 9999.*newer gateway: use that version"),
        ("9999", "existing", "newer gateway"),
        ("0000", "existing", "older gateway: start this version's server once"),
    ],
)
async def test_other_revisions_are_refused_and_left_alone(
    tmp_path: Path, revision: str, opening: Opening, told: str
) -> None:
    """The message names the database, both revisions and what to do."""
    await opened(tmp_path)
    database(tmp_path / "usage.db", f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608
    with pytest.raises(UsageStoreUnavailable, match=told):
        await opened(tmp_path, opening)
    assert database(tmp_path / "usage.db", "SELECT version_num FROM alembic_version") == [(revision,)]


async def test_a_command_that_reads_makes_no_database(tmp_path: Path) -> None:
    """It says what makes one."""
    with pytest.raises(UsageStoreUnavailable, match=r"no usage database at .*gateway serve"):
        await opened(tmp_path / "wrong", "existing")
    assert not (tmp_path / "wrong").exists()


async def test_a_damaged_database_is_named_and_kept(tmp_path: Path) -> None:
    """What may still be saved is not overwritten."""
    (tmp_path / "usage.db").write_bytes(b"no database" * 1000)
    with pytest.raises(UsageStoreUnavailable, match=r"The usage database .* is damaged"):
        await opened(tmp_path)
    assert (tmp_path / "usage.db").read_bytes() == b"no database" * 1000


def test_processes_that_open_it_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """Nothing is made while another holds the lock; the keys' lock is another one."""
    tmp_path.joinpath("usage.db.lock").touch()
    with tmp_path.joinpath("usage.db.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        opening = [subprocess.Popen([sys.executable, "-c", OPEN, str(tmp_path)]) for _ in range(2)]
        asyncio.run(_make_keys(tmp_path))
        assert [process.poll() for process in opening] == [None, None]
        assert not tmp_path.joinpath("usage.db").exists()
    assert [process.wait(120) for process in opening] == [0, 0]
    assert database(tmp_path / "usage.db", "SELECT count(*) FROM alembic_version") == [(1,)]


async def _make_keys(data_dir: Path) -> None:
    async with Store(data_dir) as store:
        await store.secret()
