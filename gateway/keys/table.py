"""The keys that a server knows, by the hash of what opens them. No database here, and no clock."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.keys.key import Key
from gateway.keys.times import as_text
from gateway.store import StoredKey

Change = tuple[str, Key | None]
"""A key's id and what it is now; None if it opens nothing any more."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What one token opens: a key, until a time in seconds since 1970; then `refusal` says why not."""

    key: Key
    valid_until: float
    refusal: str


class Table:
    """Known keys. Changes are answered, not announced: their order and their audience are the caller's."""

    def __init__(self) -> None:
        self._secrets: dict[bytes, Secret] = {}
        self._hashes: dict[str, tuple[bytes, ...]] = {}
        self._living: dict[str, Key] = {}
        self._next_expiry = math.inf

    def find(self, sha256: bytes) -> Secret | None:
        """What the token of this hash opens, or once opened."""
        return self._secrets.get(sha256)

    def current(self, key: Key) -> Key:
        """What the key of this id is by now; the same if it opens nothing any more."""
        return self._living.get(key.id, key)

    def put(self, loaded: Iterable[StoredKey], now: float) -> Iterator[Change]:
        """Takes keys over as the store has them. Yields those that are other than before."""
        for stored in loaded:
            key = Key.from_row(stored.row)
            self._forget(key.id)
            self._hashes[key.id] = tuple(secret.sha256 for secret in stored.secrets)
            self._secrets.update(_open(key, stored))
            yield from self._live(key, now)

    def keep(self, ids: set[str]) -> Iterator[Change]:
        """Drops all keys but these. Yields those that were alive."""
        for key_id in self._hashes.keys() - ids:
            self._forget(key_id)
            del self._hashes[key_id]
            if self._living.pop(key_id, None) is not None:
                yield key_id, None

    def expire(self, now: float) -> Iterator[Change]:
        """Yields the keys whose time is over since the last call; costs nothing while there is none."""
        if now < self._next_expiry:
            return
        ends = {key_id: _end(key) for key_id, key in self._living.items()}
        self._next_expiry = min((end for end in ends.values() if end > now), default=math.inf)
        for key_id in [key_id for key_id, end in ends.items() if end <= now]:
            del self._living[key_id]
            yield key_id, None

    def _forget(self, key_id: str) -> None:
        for sha256 in self._hashes.get(key_id, ()):
            self._secrets.pop(sha256, None)

    def _live(self, key: Key, now: float) -> Iterator[Change]:
        before = self._living.pop(key.id, None)
        after = key if _end(key) > now else None
        if after is not None:
            self._living[key.id] = after
            self._next_expiry = min(self._next_expiry, _end(after))
        if before != after:
            yield key.id, after


def _end(key: Key) -> float:
    """When a key's time is over, in seconds since 1970."""
    if key.revoked_at is not None:
        return -math.inf
    return math.inf if key.expires_at is None else key.expires_at.timestamp()


def _open(key: Key, stored: StoredKey) -> Iterator[tuple[bytes, Secret]]:
    end = _end(key)
    gone = f"key {key.id} expired at {as_text(key.expires_at)}"
    if key.revoked_at is not None:
        gone = f"key {key.id} was revoked at {as_text(key.revoked_at)}"
    for secret in stored.secrets:
        if secret.valid_until is None or secret.valid_until.timestamp() >= end:
            yield secret.sha256, Secret(key, end, gone)
        else:
            rotated = f"a secret of key {key.id} that was rotated and ended at {as_text(secret.valid_until)}"
            yield secret.sha256, Secret(key, secret.valid_until.timestamp(), rotated)
