"""What an operator does to keys: create, list, show, update, rotate, revoke.

The command line and the admin API are two faces of it; requests of callers never come here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.errors import InvalidRequest, NotFound
from gateway.keys import fields, times, token
from gateway.keys.key import Key
from gateway.store import Reader, Row, Store

FIRST_NAME = "first"


@dataclass(frozen=True, slots=True)
class Issued:
    """A key with its token, which is known here and never again."""

    key: Key
    token: str

    def as_json(self) -> dict[str, Any]:
        """`id` and `key` (the token), then the other fields of the key object."""
        return {"id": self.key.id, "key": self.token, **self.key.as_json()}


async def _nobody() -> None:
    """Nobody in this process waits for changes; a server's directory sees them by itself."""


class Keyring:
    """All keys of a store, as an operator changes them.

    `changed` is awaited after each change, so that a server knows it before it answers. Data come as JSON
    has them (see `fields`). Methods raise InvalidRequest for bad data, NotFound for an unknown id, and
    KeyStoreUnavailable or StorageFull as the store does.
    """

    def __init__(
        self,
        store: Store,
        changed: Callable[[], Awaitable[None]] = _nobody,
        now: Callable[[], datetime] = times.now,
    ) -> None:
        self._store = store
        self._changed = changed
        self._now = now

    async def create(self, data: Mapping[str, object]) -> Issued:
        """A new key, or with `key` in the data a token of old under a new id."""
        now = self._now()
        row, secret = _new(fields.read(fields.NewKey, data, now), now)
        async with self._store.write() as writer:
            await _refuse_taken(writer, secret)
            await writer.insert_key(row, token.sha256(secret.encode()))
        await self._changed()
        return Issued(Key.from_row(row), secret)

    async def create_first(self) -> Issued | None:
        """A key named "first" without limits, if there has never been any key; otherwise None."""
        now = self._now()
        row, secret = _new(fields.read(fields.NewKey, {"name": FIRST_NAME}, now), now)
        async with self._store.write() as writer:
            if await writer.version():
                return None
            await writer.insert_key(row, token.sha256(secret.encode()))
        await self._changed()
        return Issued(Key.from_row(row), secret)

    async def list_all(self) -> list[Key]:
        """All keys, revoked ones too, the oldest first."""
        async with self._store.read() as reader:
            return [Key.from_row(row) for row in await reader.keys()]

    async def show(self, key_id: str) -> Key:
        """One key, by its id with or without `sk-gw-`."""
        async with self._store.read() as reader:
            return await _existing(reader, key_id)

    async def update(self, key_id: str, data: Mapping[str, object]) -> Key:
        """The key after the fields in `data` were set; null unsets one, the others stay."""
        change = fields.read(fields.KeyChange, data, self._now())
        if not change.model_fields_set:
            raise InvalidRequest(
                f"Nothing to change: give one or more of {', '.join(fields.KeyChange.model_fields)}."
            )
        async with self._store.write() as writer:
            key = await _living(writer, key_id)
            await writer.update_key(key.id, change.columns(key.id, change.model_fields_set))
            key = await _existing(writer, key.id)
        await self._changed()
        return key

    async def rotate(self, key_id: str, data: Mapping[str, object]) -> Issued:
        """The key with a new secret; the old one ends now, or after `overlap` ("24h") in the data."""
        now = self._now()
        rotation = fields.read(fields.Rotation, data, now)
        async with self._store.write() as writer:
            key = await _living(writer, key_id)
            if key.has_expired(now):
                raise InvalidRequest(
                    f"Key {key.id} expired at {times.as_text(key.expires_at)}: set another expires_at first."
                )
            secret = token.new(key.id)
            await writer.end_secrets(key.id, now + rotation.overlap)
            await writer.add_secret(key.id, token.sha256(secret.encode()))
        await self._changed()
        return Issued(key, secret)

    async def revoke(self, key_id: str) -> Key:
        """The key, which opens nothing from now on. Revoking twice changes nothing."""
        async with self._store.write() as writer:
            key = await _existing(writer, key_id)
            if key.revoked_at is not None:
                return key
            await writer.update_key(key.id, {"revoked_at": self._now()})
            key = await _existing(writer, key.id)
        await self._changed()
        return key


def _new(new: fields.NewKey, now: datetime) -> tuple[Row, str]:
    key_id = token.new_id()
    row = {
        "id": key_id,
        **new.columns(key_id, fields.KeyChange.model_fields),
        "created_at": now,
        "last_used_at": None,
        "revoked_at": None,
    }
    return row, new.key or token.new(key_id)


async def _refuse_taken(reader: Reader, secret: str) -> None:
    holder = await reader.holder(token.sha256(secret.encode()))
    if holder is not None:
        raise InvalidRequest(
            f"key is already that of {holder}, or was before it was rotated or revoked. "
            "Update that key instead, or take another value.",
            param="key",
        )


async def _existing(reader: Reader, written: str) -> Key:
    key_id = token.id_of(written)
    if key_id is None:
        raise NotFound(
            "That is not the id of a key: an id is 12 characters of a-z0-9, with or without 'sk-gw-'."
        )
    row = await reader.key(key_id)
    if row is None:
        raise NotFound(f"There is no key {key_id}. List the keys to see their ids.")
    return Key.from_row(row)


async def _living(reader: Reader, written: str) -> Key:
    key = await _existing(reader, written)
    if key.revoked_at is not None:
        raise InvalidRequest(
            f"Key {key.id} was revoked at {times.as_text(key.revoked_at)} and stays so: create another one."
        )
    return key
