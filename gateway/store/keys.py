"""The statements on keys: every change leaves its version in the same transaction.

Rows are mappings with the names of `schema.keys`; what they mean is the business of `gateway.keys`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store import schema

PAGE = 100  # rows read at once: a live stream waits while they become Python values

Row = Mapping[str, Any]
_keys, _secrets, _changes = schema.keys.c, schema.key_secrets.c, schema.key_changes.c


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """The SHA-256 of what opens a key, and until when it does (None: as long as the key)."""

    sha256: bytes
    valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key's row with its secrets."""

    row: Row
    secrets: tuple[StoredSecret, ...]


class Reader:
    """What one connection sees. `generation` is that of the store when it was opened, or an older one."""

    def __init__(self, connection: AsyncConnection, generation: int) -> None:
        self.generation = generation
        self._connection = connection

    async def version(self) -> int:
        """The highest version of all changes; 0 before the first."""
        return await self._connection.scalar(select(func.max(_changes.version))) or 0

    async def key(self, key_id: str) -> Row | None:
        """The row of one key."""
        found = await self._connection.execute(select(schema.keys).where(_keys.id == key_id))
        row = found.mappings().first()
        return None if row is None else dict(row)

    async def keys(self) -> list[Row]:
        """All rows, the oldest key first."""
        rows: list[Row] = []
        page = select(schema.keys).where(_keys.id > bindparam("last")).order_by(_keys.id).limit(PAGE)
        while found := (await self._connection.execute(page, {"last": rows[-1]["id"] if rows else ""})).all():
            rows += [dict(row._mapping) for row in found]  # noqa: SLF001  the documented name of it
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]))

    async def holder(self, sha256: bytes) -> str | None:
        """The id of the key that this secret opens or has opened."""
        found: str | None = await self._connection.scalar(
            select(_secrets.key_id).where(_secrets.sha256 == sha256)
        )
        return found

    async def changed(self, since: int, limit: int = PAGE) -> tuple[int, list[StoredKey]]:
        """The first `limit` keys that changed after version `since`, and the version that this reaches."""
        newer = select(_changes.key_id, _changes.version).where(_changes.version > since)
        newer = newer.order_by(_changes.version).limit(limit)
        versions = [row.version for row in await self._connection.execute(newer)]
        if not versions:
            return since, []
        ids = select(_changes.key_id).where(_changes.version.between(versions[0], versions[-1]))
        return versions[-1], await self._stored(ids)

    async def page(self, after: str, limit: int = PAGE) -> list[StoredKey]:
        """The next `limit` keys by id; the first page is after the empty id."""
        return await self._stored(select(_keys.id).where(_keys.id > after).order_by(_keys.id).limit(limit))

    async def _stored(self, ids: Select[tuple[str]]) -> list[StoredKey]:
        secrets: dict[str, list[StoredSecret]] = {}
        found = await self._connection.execute(select(schema.key_secrets).where(_secrets.key_id.in_(ids)))
        for secret in found:
            secrets.setdefault(secret.key_id, []).append(StoredSecret(secret.sha256, secret.valid_until))
        rows = await self._connection.execute(select(schema.keys).where(_keys.id.in_(ids)).order_by(_keys.id))
        return [StoredKey(dict(row), tuple(secrets.get(row["id"], ()))) for row in rows.mappings()]


class Writer(Reader):
    """What one transaction changes."""

    async def insert_key(self, row: Row, sha256: bytes) -> None:
        """A new key with its first secret."""
        await self._connection.execute(insert(schema.keys).values(**row))
        await self.add_secret(row["id"], sha256)

    async def update_key(self, key_id: str, values: Row) -> None:
        """Other values for some columns of a key."""
        await self._connection.execute(update(schema.keys).where(_keys.id == key_id).values(**values))
        await self._changed(key_id)

    async def add_secret(self, key_id: str, sha256: bytes) -> None:
        """One more secret that opens a key."""
        await self._connection.execute(
            insert(schema.key_secrets).values(sha256=sha256, key_id=key_id, valid_until=None)
        )
        await self._changed(key_id)

    async def end_secrets(self, key_id: str, at: datetime) -> None:
        """All secrets of a key end at that time, those that end earlier excepted."""
        still_valid: ColumnElement[bool] = or_(_secrets.valid_until.is_(None), _secrets.valid_until > at)
        await self._connection.execute(
            update(schema.key_secrets).where(_secrets.key_id == key_id, still_valid).values(valid_until=at)
        )
        await self._changed(key_id)

    async def touch(self, last_used_at: Mapping[str, datetime]) -> None:
        """When keys were last used, by id. No change of the key: nobody needs to load it again."""
        later = or_(_keys.last_used_at.is_(None), _keys.last_used_at < bindparam("used"))
        statement = update(schema.keys).where(_keys.id == bindparam("key"), later)
        uses: Sequence[Row] = [{"key": key_id, "used": used} for key_id, used in last_used_at.items()]
        await self._connection.execute(statement.values(last_used_at=bindparam("used")), uses)

    async def secret(self, name: str, *, otherwise: str, now: datetime) -> str:
        """The secret of this name; if there is none, `otherwise` becomes it."""
        found: str | None = await self._connection.scalar(
            select(schema.secrets.c.value).where(schema.secrets.c.name == name)
        )
        if found is None:
            await self._connection.execute(
                insert(schema.secrets).values(name=name, value=otherwise, created_at=now)
            )
        return found or otherwise

    async def _changed(self, key_id: str) -> None:
        # The row before goes, so that the table stays as small as the keys; its version does not return.
        await self._connection.execute(delete(schema.key_changes).where(_changes.key_id == key_id))
        await self._connection.execute(insert(schema.key_changes).values(key_id=key_id))
