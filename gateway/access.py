"""Who may call: picks the key out of the request's headers. Whether it is one is `keys`' knowledge."""

from collections.abc import Iterable

from gateway.errors import InvalidApiKey, KeyStoreUnavailable
from gateway.keys import Directory, Key


def find_key(headers: Iterable[tuple[bytes, bytes]], directory: Directory) -> Key:
    """The caller's key. `Authorization: Bearer` counts if it is one of ours, else `x-api-key`.

    Raises InvalidApiKey, or KeyStoreUnavailable if the key is unknown and the store cannot be read.
    """
    bearer: bytes | None = None
    other: bytes | None = None
    for name, value in headers:
        if name == b"authorization":
            bearer = _only(bearer, _token(value))
        elif name == b"x-api-key":
            other = _only(other, value.strip())
    try:
        return directory.find(bearer or b"")
    except (InvalidApiKey, KeyStoreUnavailable) as refusal:
        if not other:
            raise
        return _find_other(other, refusal, directory)


def _find_other(other: bytes, refusal: InvalidApiKey | KeyStoreUnavailable, directory: Directory) -> Key:
    try:
        return directory.find(other)
    except InvalidApiKey:
        if isinstance(refusal, KeyStoreUnavailable):  # the first may be good: 401 would send its owner away
            raise refusal from None
        raise


def _only(before: bytes | None, token: bytes) -> bytes:
    if before is not None:  # which of two counts, a proxy in front may have decided otherwise
        raise InvalidApiKey("two keys in headers of the same name")
    return token


def _token(authorization: bytes) -> bytes:
    """The token of a Bearer header, its scheme in any case; empty for anything else."""
    scheme, _, token = authorization.strip().partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""
