"""The lifetime of a database: opened once, read and written in transactions, found again if lost.

An open SQLite file lives on after it was deleted, renamed or overwritten, and its reader would never
know. So each use first looks at the file itself; if it is another one, all connections are replaced.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import orjson
from sqlalchemy import URL, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from gateway.errors import GatewayError
from gateway.store.failures import translated
from gateway.store.kind import Kind
from gateway.store.migrate import BUSY_SECONDS, Opening, other_revision, prepare, uri


class Database:
    """The database of one kind under one data directory.

    `async with` opens it as `opening` says (see `migrate.Opening`). `generation` grows whenever the file
    was found to be another one than before: what was read earlier may then have no meaning any more.
    All methods raise the kind's own error or StorageFull, which name the file and the mend.
    """

    def __init__(self, data_dir: Path, kind: Kind, opening: Opening) -> None:
        self.path = data_dir.absolute() / kind.file_name
        self.generation = 0
        self._kind = kind
        self._opening: Opening = opening
        self._connections = _Connections(self.path, kind)
        self._file: _File | None = None
        self._finding = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(prepare, self.path, self._opening, self._kind)
        try:
            await self._find_file()
        except GatewayError:
            await self._connections.give_up()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.give_up()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[tuple[AsyncConnection, int]]:
        """A connection that sees what the database holds, and the generation that this belongs to."""
        async with (
            self._watched() as generation,
            self._connections.used() as engine,
            engine.connect() as connection,
        ):
            yield connection, generation

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[tuple[AsyncConnection, int]]:
        """One transaction: all of it on leaving, nothing of it on an error. Writers wait for each other."""
        async with self._watched() as generation:
            async with self._connections.used() as engine, engine.begin() as connection:
                # At once, not at the first change: what is read in here is still true when it is written.
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection, generation
            if self._kind.is_busy:
                self._accept_checkpoint()

    def _accept_checkpoint(self) -> None:
        """What a commit of ours has moved into the file is no foreign change of it."""
        found = _look(self.path)
        if self._file is not None and found.is_same_file(self._file):
            self._file = found

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[int]:
        await self._find_file()
        try:
            with translated(self.path, self._kind):
                yield self.generation
        except self._kind.unavailable:
            self._file = None  # whatever it was: the next use starts with connections of its own
            raise

    async def _find_file(self) -> None:
        with translated(self.path, self._kind):
            if self._file is not None and self._file == _look(self.path):
                return
            async with self._finding:
                await self._reopen()

    async def _reopen(self) -> None:
        before = _look(self.path)
        if self._file == before:
            return
        self._file = None
        await self._connections.give_up()
        self._connections = _Connections(self.path, self._kind)
        self.generation += 1
        async with self._connections.used() as engine, engine.connect() as connection:
            found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
        if found != self._kind.revision:
            raise other_revision(self.path, str(found), self._kind)
        # Opening made the log, and may have moved it into the file: only now is this what we watch.
        self._file = _look(self.path)


class Owner:
    """What stands on one database, which is opened and left with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def path(self) -> Path:
        """Where its file is."""
        return self._database.path

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._database.__aexit__(kind, error, trace)


class _Connections:
    """The connections to one file. Given up, they are closed as soon as nobody uses one of them.

    SQLAlchemy's `dispose` alone closes those at rest: one in use would go back to a pool that is nobody's.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self._engine = _engine(path, kind)
        self._users = 0
        self._given_up = False

    @asynccontextmanager
    async def used(self) -> AsyncIterator[AsyncEngine]:
        """While within, what is taken from it stays open."""
        self._users += 1
        try:
            yield self._engine
        finally:
            self._users -= 1
            await self._close_unused()

    async def give_up(self) -> None:
        """No new users come."""
        self._given_up = True
        await self._close_unused()

    async def _close_unused(self) -> None:
        if self._given_up and not self._users:
            await self._engine.dispose()


class _File(NamedTuple):
    """What tells one file at a path from another, or from itself after a foreign write."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int
    log_inode: int

    def is_same_file(self, other: "_File") -> bool:
        """Whether it is the same file with the same log, written or not."""
        return (self.device, self.inode, self.log_inode) == (other.device, other.inode, other.log_inode)


def _look(path: Path) -> _File:
    """The file at `path` as it is now. Its time changes when the log is moved into it: rarely."""
    # Two calls of microseconds: this database's kind of log works on local disks alone.
    file = path.stat()
    try:
        log_inode = path.with_name(f"{path.name}-wal").stat().st_ino
    except FileNotFoundError:
        log_inode = 0
    return _File(file.st_dev, file.st_ino, file.st_size, file.st_ctime_ns, log_inode)


def _engine(path: Path, kind: Kind) -> AsyncEngine:
    engine = create_async_engine(
        URL.create(
            "sqlite+aiosqlite", database=uri(path).partition("?")[0], query={"mode": "rw", "uri": "true"}
        ),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        pool_size=2,  # who reads keeps one, who writes another: neither waits for the other
        pool_use_lifo=True,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in kind.pragmas:
            cursor.execute(pragma)
        cursor.close()

    return engine
