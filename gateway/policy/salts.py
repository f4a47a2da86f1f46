"""Salts of the prefix cache: keys of one group share its entries, all others neither share nor probe them.

A salt enters the hash of a prompt's first block, so a caller who does not know it cannot find out by
timing whether somebody else has sent a prompt before.
"""

import base64
import hashlib
import hmac

_PURPOSE = b"cache-salt\0"
_SIZE_BYTES = 16  # 128 bits: not to be guessed, and short in each request


class Salts:
    """The salts that follow from one secret, each derived at the first call of its group."""

    __slots__ = ("_by_group", "_secret")

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode("utf-8", "surrogateescape")
        self._by_group: dict[str, str] = {}

    def of(self, cache_group: str) -> str:
        """22 characters of base64url, the same for a group as long as the secret is."""
        salt = self._by_group.get(cache_group)
        if salt is None:
            salt = self._by_group[cache_group] = _derive(self._secret, cache_group)
        return salt


def _derive(secret: bytes, cache_group: str) -> str:
    mac = hmac.digest(secret, _PURPOSE + cache_group.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(mac[:_SIZE_BYTES]).rstrip(b"=").decode()
