"""The key database as the rooms above use it: opened once, read and written in transactions."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from gateway.store.database import Database, Owner
from gateway.store.keys import Reader, Writer
from gateway.store.migrate import Opening
from gateway.store.schema import KEYS

GATEWAY_SECRET = "gateway_secret"  # noqa: S105  the name of a row


class Store(Owner):
    """The key database under one data directory, `gateway.db`.

    `async with` opens it as `opening` says. All methods raise KeyStoreUnavailable or StorageFull, which
    name the file and the mend.
    """

    def __init__(self, data_dir: Path, opening: Opening = "migrate") -> None:
        super().__init__(Database(data_dir, KEYS, opening))

    @property
    def generation(self) -> int:
        """Grows with each other file that is found in its place; see `Database`."""
        return self._database.generation

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reader]:
        """What the database holds."""
        async with self._database.reading() as (connection, generation):
            yield Reader(connection, generation)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Writer]:
        """One transaction: all of it on leaving, nothing of it on an error. Writers wait for each other."""
        async with self._database.writing() as (connection, generation):
            yield Writer(connection, generation)

    async def secret(self) -> str:
        """The gateway's own secret: 43 characters, made at the first call, the same for ever after."""
        async with self.write() as writer:
            made = secrets.token_urlsafe(32)
            return await writer.secret(GATEWAY_SECRET, otherwise=made, now=datetime.now(UTC))
