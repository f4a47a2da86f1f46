"""Transactions of the key database, its versions, and what happens to its file."""

import gc
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gateway.errors import KeyStoreUnavailable, StorageFull
from gateway.store import Store, Writer
from gateway.store.failures import from_sqlite
from gateway.store.schema import KEYS

TWENTY_KEYS = """
import asyncio, pathlib, sys
from gateway.keys import Keyring
from gateway.store import Store
async def main():
    async with Store(pathlib.Path(sys.argv[1])) as store:
        for _ in range(20):
            await Keyring(store).create({"name": sys.argv[2]})
asyncio.run(main())
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open database in a directory of its own."""
    async with Store(tmp_path) as opened:
        yield opened


def row(key_id: str, **values: Any) -> dict[str, Any]:
    """A key's row with nothing special in it."""
    plain = {"name": "n", "priority": "interactive", "weight": 1.0, "cache_group": key_id}
    objects: dict[str, Any] = {"defaults": {}, "force": {}, "metadata": {}}
    return {"id": key_id, "created_at": datetime.now(UTC), **plain, **objects, **values}


async def insert(writer: Writer, key_id: str) -> None:
    await writer.insert_key(row(key_id), key_id.encode() * 2)


async def test_a_transaction_is_written_whole_or_not_at_all(store: Store) -> None:
    """An error inside takes back the key and its version alike."""

    async def fail() -> None:
        async with store.write() as writer:
            await insert(writer, "aaaaaaaaaaaa")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with store.read() as reader:
        assert (await reader.version(), await reader.keys()) == (0, [])


async def test_versions_only_grow(store: Store) -> None:
    """Also after a change took the place of an older one: who saw version n never misses n + 1."""
    seen = [0]
    for key_id in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        async with store.write() as writer:
            await insert(writer, key_id)
            seen.append(await writer.version())
    for key_id in ("bbbbbbbbbbbb", "aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        async with store.write() as writer:
            await writer.update_key(key_id, {"name": "other"})
            seen.append(await writer.version())
    assert seen == sorted(set(seen))


async def test_only_what_changed_since_is_loaded_in_pieces(store: Store) -> None:
    """Each piece says how far it reaches; the last one is empty."""
    async with store.write() as writer:
        for key_id in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"):
            await insert(writer, key_id)
        before = await writer.version()
        await writer.update_key("cccccccccccc", {"name": "x"})
        await writer.update_key("aaaaaaaaaaaa", {"name": "y"})
    loaded = []
    async with store.read() as reader:
        reached, keys = await reader.changed(before, 1)
        while keys:
            loaded += [key.row["id"] for key in keys]
            reached, keys = await reader.changed(reached, 1)
    assert loaded == ["cccccccccccc", "aaaaaaaaaaaa"]


async def test_the_time_of_use_is_no_change_and_never_goes_back(store: Store) -> None:
    """Otherwise every call of a caller would make all servers load its key again."""
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    async with store.write() as writer:
        await insert(writer, "aaaaaaaaaaaa")
        version = await writer.version()
        await writer.touch({"aaaaaaaaaaaa": late, "nosuchkeyatall": late})
        await writer.touch({"aaaaaaaaaaaa": early})
        found = await writer.key("aaaaaaaaaaaa")
        assert await writer.version() == version
    assert found is not None
    assert found["last_used_at"] == late


def test_two_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    """Each of the forty keys is there, and each has its own version."""
    run = [sys.executable, "-c", TWENTY_KEYS, str(tmp_path)]
    writing = [subprocess.Popen([*run, name]) for name in ("left", "right")]
    assert [process.wait(120) for process in writing] == [0, 0]
    with closing(sqlite3.connect(tmp_path / "gateway.db")) as connection:
        counted = connection.execute("SELECT name, count(*) FROM keys GROUP BY name ORDER BY name").fetchall()
        versions = connection.execute("SELECT count(DISTINCT version) FROM key_changes").fetchone()
    assert (counted, versions) == ([("left", 20), ("right", 20)], (40,))


async def test_the_gateways_secret_is_made_once(tmp_path: Path) -> None:
    """What is derived from it must be the same after a restart."""
    async with Store(tmp_path) as store:
        made = await store.secret()
        assert await store.secret() == made
    async with Store(tmp_path) as again:
        assert await again.secret() == made
    assert len(made) == 43


async def test_a_lost_file_is_noticed_and_not_made_anew(store: Store) -> None:
    """An open database would go on reading from a file that is no longer there."""
    store.path.unlink()
    with pytest.raises(KeyStoreUnavailable, match="There is no key database"):
        async with store.read() as reader:
            await reader.version()
    assert not store.path.exists()


async def test_another_file_in_its_place_is_read_from_then_on(store: Store, tmp_path: Path) -> None:
    """As after a backup was put back; `generation` tells the reader to forget what it knew."""
    async with Store(tmp_path / "other") as other, other.write() as writer:
        await insert(writer, "aaaaaaaaaaaa")
    before = store.generation
    shutil.move(tmp_path / "other" / "gateway.db", store.path)
    async with store.read() as reader:
        assert [key["id"] for key in await reader.keys()] == ["aaaaaaaaaaaa"]
    assert store.generation > before


async def test_a_connection_in_use_while_the_file_changes_is_closed_after_its_use(
    store: Store, recwarn: pytest.WarningsRecorder
) -> None:
    """It reads on to its end, and no connection is left to the garbage collector."""
    async with store.read() as before:
        assert await before.version() == 0
        store.path.rename(store.path.with_name("away.db"))
        shutil.copyfile(store.path.with_name("away.db"), store.path)
        async with store.read() as anew:
            assert anew.generation > before.generation
        assert await before.version() == 0
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


async def test_a_lost_log_is_noticed(store: Store) -> None:
    """Without it, other processes would write where this one does not read."""
    before = store.generation
    store.path.with_name("gateway.db-wal").unlink()
    async with store.read() as reader:
        await reader.version()
    assert store.generation > before


async def test_a_full_disk_is_told_as_such(store: Store) -> None:
    """SQLite's own result code for it becomes 507 with the path."""

    async def fill() -> None:
        async with store.write() as writer:
            await writer._connection.execute(text("PRAGMA max_page_count = 1"))
            for number in range(100):
                await writer.insert_key(row(f"{number:012}", name="n" * 1000), number.to_bytes(32, "big"))

    with pytest.raises(StorageFull, match="No room is left on the disk"):
        await fill()


async def test_a_value_that_was_edited_by_hand_is_told(store: Store) -> None:
    """A row that cannot be understood is the store's failure, with the reason."""
    async with store.write() as writer:
        await insert(writer, "aaaaaaaaaaaa")
        await writer._connection.execute(text("UPDATE keys SET defaults = '{broken'"))
    with pytest.raises(KeyStoreUnavailable, match="holds a value that cannot be read"):
        async with store.read() as reader:
            await reader.keys()


def test_a_lock_held_elsewhere_is_told(tmp_path: Path) -> None:
    """With a time to come back: it is the one failure that passes by itself."""
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as holder, closing(sqlite3.connect(path, timeout=0)) as waiting:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as raised:
            waiting.execute("BEGIN IMMEDIATE")
    told = from_sqlite(raised.value, path, KEYS)
    assert "Another process holds the lock" in told.message
    assert told.retry_after == 1
