"""What a running server does while the file of its keys is gone, broken, locked, or another one."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.keys import Directory, Keyring, token
from gateway.metrics import Metrics
from gateway.store import Store
from tests.keys.serving import EFFECTIVE_SECONDS, NOTICED_SECONDS, Server, known
from tests.keys.waiting import until
from tests.store.harm import (
    delete,
    empty,
    lock,
    other_revision,
    overwrite,
    rename,
    rename_directory,
    replace_by_directory,
)

UNKNOWN = token.new("zzzzzzzzzzzz")


@contextmanager
def log_of_state() -> Iterator[list[str]]:
    """The events about the store that are logged within."""
    events: list[str] = []
    with capture_logs() as lines:
        yield events
        events += [line["event"] for line in lines if line["event"].startswith("key_store")]


@pytest.mark.parametrize(
    "harm",
    [delete, rename, rename_directory, overwrite, empty, replace_by_directory, other_revision, lock],
)
async def test_known_keys_go_on_while_the_store_is_gone(
    tmp_path: Path, harm: Callable[[Path], Callable[[], object]]
) -> None:
    """Unknown ones get 503 within 2 s, never 401; it is counted, logged once, and heals by itself."""
    path = tmp_path / "data" / "gateway.db"
    async with Store(path.parent, "create") as own:
        issued = await Keyring(own).create({"name": "known"})
    async with Store(path.parent) as store:
        metrics = Metrics()
        async with Directory(store, metrics) as running:
            server = Server(running, metrics)
            with log_of_state() as events:
                mend = harm(path)
                try:
                    await until(lambda: server.says_come_back(UNKNOWN), NOTICED_SECONDS)
                    assert (server.store_up, server.directory.available) == (0.0, False)
                    for _ in range(0 if harm is lock else 3):  # under a lock each would take its time
                        await server.directory.refresh()
                    assert server.find(issued.token).id == issued.key.id
                    assert server.refusal("") == "no key"
                finally:
                    mend()
                await until(lambda: not server.says_come_back(UNKNOWN), NOTICED_SECONDS)
                assert (server.store_up, server.directory.available) == (1.0, True)
                assert server.find(issued.token).id == issued.key.id
            assert events == ["key_store_unavailable", "key_store_available"]


async def test_uses_are_kept_while_the_store_is_gone(server: Server, store: Store, keyring: Keyring) -> None:
    """And written when it is back."""
    issued = await known(server, keyring)
    away = store.path.rename(store.path.with_name("away.db"))
    server.find(issued.token)
    await server.directory.write_uses()
    away.rename(store.path)
    await server.directory.write_uses()
    assert (await keyring.show(issued.key.id)).last_used_at is not None


async def test_a_new_database_in_the_place_of_a_deleted_one_is_believed(
    server: Server, store: Store, keyring: Keyring
) -> None:
    """Its keys work, those of the deleted one do not any more, and their streams are told."""
    lost = await known(server, keyring)
    for file in store.path.parent.glob("gateway.db*"):
        file.unlink()
    async with Store(store.path.parent, "create") as anew:
        made = await Keyring(anew).create({"name": "new"})
    await until(lambda: server.refusal(made.token) is None, NOTICED_SECONDS)
    await until(lambda: server.refusal(lost.token) == "unknown key", NOTICED_SECONDS)
    assert (lost.key.id, None) in server.told


async def test_a_backup_put_back_is_believed(server: Server, store: Store, keyring: Keyring) -> None:
    """What was made after it is gone, what was revoked after it lives, though versions went back."""
    kept = await known(server, keyring)
    with (
        closing(sqlite3.connect(store.path)) as source,
        closing(sqlite3.connect(store.path.with_name("backup.db"))) as target,
    ):
        source.backup(target)
    later = await known(server, keyring)
    await keyring.revoke(kept.key.id)
    await until(lambda: server.refusal(kept.token) is not None, EFFECTIVE_SECONDS)
    with (
        closing(sqlite3.connect(store.path.with_name("backup.db"))) as source,
        closing(sqlite3.connect(store.path)) as target,
    ):
        source.backup(target)
    await until(lambda: server.refusal(kept.token) is None, NOTICED_SECONDS)
    await until(lambda: server.refusal(later.token) == "unknown key", NOTICED_SECONDS)


async def test_a_poll_does_not_hold_up_the_event_loop(server: Server, store: Store, keyring: Keyring) -> None:
    """While another process keeps the store busy, the loop turns and keys are found."""
    issued = await known(server, keyring)
    mend = lock(store.path)
    try:
        refreshing = asyncio.create_task(server.directory.refresh())
        turns = 0
        async with asyncio.timeout(60):
            while server.directory.available:
                await asyncio.sleep(0.01)
                server.find(issued.token)
                turns += 1
        assert turns > 3  # of 150; a loop that was held up turns once
    finally:
        mend()
    await refreshing
