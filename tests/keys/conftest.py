"""A key database in a directory of its own, an operator's keyring on it, and a server that knows its keys."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.keys import Directory, Keyring
from gateway.metrics import Metrics
from gateway.store import Store
from tests.keys.serving import Clock, Server


@pytest.fixture
def clock() -> Clock:
    """Time as it passes, until a test sets it ahead."""
    return Clock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """The database as the server holds it."""
    async with Store(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
async def keyring(store: Store, clock: Clock) -> AsyncIterator[Keyring]:
    """An operator beside the server, with connections of its own."""
    async with Store(store.path.parent, "create") as own:
        yield Keyring(own, now=clock.now)


@pytest.fixture
async def server(store: Store, clock: Clock) -> AsyncIterator[Server]:
    """What a running gateway knows of the keys."""
    metrics = Metrics()
    async with Directory(store, metrics, clock) as directory:
        running = Server(directory, metrics)
        directory.subscribe(lambda key_id, key: running.told.append((key_id, key)))
        yield running
