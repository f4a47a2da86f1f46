"""A key as callers hold it, `sk-gw-<id>-<secret>`: its form and its hash. Which exist is not known here."""

import hashlib
import re
import secrets
import string

PREFIX = "sk-gw-"
ID_LENGTH = 12
SECRET_LENGTH = 43  # of 62 characters: 256 bits
SHORTEST = 20

_ID_CHARACTERS = string.ascii_lowercase + string.digits
_SECRET_CHARACTERS = string.ascii_letters + string.digits
_ID = re.compile(rf"[a-z0-9]{{{ID_LENGTH}}}")
_OURS = re.compile(rf"{PREFIX}({_ID.pattern})-[a-zA-Z0-9]{{{SECRET_LENGTH}}}")
_POSSIBLE = re.compile(rb"[!-~][ -~]{%d,}[!-~]" % (SHORTEST - 2))


def new_id() -> str:
    """A random id: 12 characters of a-z0-9. It is no secret."""
    return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(ID_LENGTH))


def new(key_id: str) -> str:
    """A random token for the key of this id."""
    secret = "".join(secrets.choice(_SECRET_CHARACTERS) for _ in range(SECRET_LENGTH))
    return f"{PREFIX}{key_id}-{secret}"


def sha256(token: bytes) -> bytes:
    """What is stored in the place of a token. Its 256 random bits need no slow hash."""
    return hashlib.sha256(token).digest()


def is_possible(token: bytes) -> bool:
    """Whether a key can look so: 20 or more printable ASCII characters, no space at the ends."""
    return _POSSIBLE.fullmatch(token) is not None


def id_of(text: str) -> str | None:
    """The id in what an operator wrote as one: with or without `sk-gw-`, or a whole token.

    None if there is none in it; it may be anything then, a secret too, and must not be repeated.
    """
    if found := _OURS.fullmatch(text):
        return found[1]
    bare = text.removeprefix(PREFIX)
    return bare if _ID.fullmatch(bare) else None
