"""A plain answer: its bytes, whether they are what the route answers, what they count, which headers pass."""

import zlib

from gateway.errors import EngineError, Headers
from gateway.routes import Route
from gateway.usage import Usage, at_top, in_answer

_METADATA = b"metadata"  # vLLM describes an answer of mere bytes there: shapes, model, usage
_CONTENT_TYPE = b"content-type"
_JSON = "application/json"
_BYTES = "application/octet-stream"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
MAX_UNPACKED_BYTES = 268_435_456


def media_type(headers: Headers) -> str:
    """The content type without its parameters, in lower case; empty if there is none."""
    return _value(headers, _CONTENT_TYPE).partition(b";")[0].strip().lower().decode("latin-1")


def is_packed(headers: Headers) -> bool:
    """Whether the engine, or a proxy before it, compressed what was asked for as it is."""
    return _value(headers, b"content-encoding").lower() not in (b"", b"identity")


def unpacked(headers: Headers, body: bytes) -> bytes:
    """The body as it was before it was compressed: not every caller could read it, and nor could we.

    Raises EngineError for what is compressed in other ways than gzip and deflate, or badly.
    """
    if not is_packed(headers):
        return body
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(body, MAX_UNPACKED_BYTES)
    except zlib.error:
        plain = b""
    if not unpacker.eof:
        coding = _value(headers, b"content-encoding").decode("latin-1")
        raise _unreadable(f"compressed with {coding!r}, and not to be read")
    return plain


def check(headers: Headers, body: bytes) -> None:
    """Raise EngineError for an answer that calls itself JSON and cannot be it, as a page or nothing at all.

    That it can be is seen from its ends: between them may be numbers that are no JSON, which pass.
    """
    text = body.strip() if media_type(headers) == _JSON else b"{}"
    if text[:1] + text[-1:] not in (b"{}", b"[]"):
        raise _unreadable(f"{len(body)} bytes that are no JSON object")


def usage(route: Route, headers: Headers, body: bytes) -> Usage | None:
    """The tokens that the answer tells, in its body or beside it."""
    if not route.usage:
        return None
    kind = media_type(headers)
    if kind == _BYTES:
        return in_answer(_value(headers, _METADATA))
    if kind != _JSON:
        return None  # a transcript may say anything, what a count looks like too
    return at_top(body) if route.repeats else in_answer(body)


def passed_on(headers: Headers) -> Headers:
    """The engine's headers that a caller gets: those that say what the body is."""
    names = (_CONTENT_TYPE, _METADATA) if media_type(headers) == _BYTES else (_CONTENT_TYPE,)
    return [(name, value) for name, value in headers if name in names]


def _unreadable(what: str) -> EngineError:
    return EngineError(
        "The engine's answer cannot be read; the operator's log says more.", cause=f"engine answered {what}"
    )


def _value(headers: Headers, name: bytes) -> bytes:
    return next((value for key, value in headers if key == name), b"")
