"""A plain answer: its bytes, whether they are what the route answers, what they count, which headers pass."""

import zlib
from typing import NamedTuple

from gateway.errors import EngineError, Headers
from gateway.routes import Route
from gateway.usage import Usage, at_top, in_answer

_JSON = "application/json"
_BYTES = "application/octet-stream"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
MAX_UNPACKED_BYTES = 268_435_456


class Content(NamedTuple):
    """What an engine's head says of its body.

    `media_type` is the content type without its parameters, in lower case; empty if there is none. `headers`
    are those that a caller gets: what says how the body is to be read.
    """

    media_type: str
    coding: bytes
    metadata: bytes
    headers: Headers

    @property
    def is_packed(self) -> bool:
        """Whether the engine, or a proxy before it, compressed what was asked for as it is."""
        return self.coding not in (b"", b"identity")


def content(headers: Headers) -> Content:
    """What these headers say of the body that follows; of several of one name the first counts."""
    kind = coding = metadata = b""
    passed_on: Headers = []
    for name, value in headers:
        if name == b"content-type":
            kind = kind or value
            passed_on.append((name, value))
        elif name == b"content-encoding":
            coding = coding or value.lower()
        elif name == b"metadata":  # vLLM describes an answer of mere bytes there: shapes, model, usage
            metadata = metadata or value
    media_type = _JSON if kind == b"application/json" else _media_type(kind)
    if media_type == _BYTES and metadata:
        passed_on.append((b"metadata", metadata))
    return Content(media_type, coding, metadata, passed_on)


def unpacked(said: Content, body: bytes) -> bytes:
    """The body as it was before it was compressed: not every caller could read it, and nor could we.

    Raises EngineError for what is compressed in other ways than gzip and deflate, or badly.
    """
    if not said.is_packed:
        return body
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(body, MAX_UNPACKED_BYTES)
    except zlib.error:
        plain = b""
    if not unpacker.eof:
        raise _unreadable(f"compressed with {said.coding.decode('latin-1')!r}, and not to be read")
    return plain


def check(said: Content, body: bytes) -> None:
    """Raise EngineError for an answer that calls itself JSON and cannot be it, as a page or nothing at all.

    That it can be is seen from its ends: between them may be numbers that are no JSON, which pass.
    """
    if said.media_type != _JSON:
        return
    text = body.strip()
    if text[:1] + text[-1:] not in (b"{}", b"[]"):
        raise _unreadable(f"{len(body)} bytes that are no JSON object")


def usage(route: Route, said: Content, body: bytes) -> Usage | None:
    """The tokens that the answer tells, in its body or beside it."""
    if not route.usage:
        return None
    if said.media_type == _BYTES:
        return in_answer(said.metadata, generates=route.generates)
    if said.media_type != _JSON:
        return None  # a transcript may say anything, what a count looks like too
    # A tool's input in a message is an object, in which a model may write what looks like the counts.
    ambiguous = route.repeats or (route.dialect == "messages" and body.count(b'"usage"') > 1)
    return (at_top if ambiguous else in_answer)(body, generates=route.generates)


def _media_type(content_type: bytes) -> str:
    return content_type.partition(b";")[0].strip().lower().decode("latin-1")


def _unreadable(what: str) -> EngineError:
    return EngineError(
        "The engine's answer cannot be read; the operator's log says more.", cause=f"engine answered {what}"
    )
