"""A request's body: read once up to its limit, parsed once, strictly.

What an engine gets is the serialisation of what was parsed here, so nothing that two parsers could
understand differently may pass: duplicate names end here (the last wins), and integers beyond 64 bits,
NaN, lone surrogates, depth over 128 and anything that is not UTF-8 are refused.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import orjson
from starlette.types import Receive

from gateway.errors import (
    ClientClosed,
    GatewayError,
    InvalidJson,
    QueueFull,
    RequestTooLarge,
    UnsupportedMediaType,
    quote,
)

MAX_DEPTH = 128
MAX_WORK = (
    3_000_000  # half a second of parsing on a slow core; 256 prompts of 8192 token ids are two thirds of it
)
SURELY_LITTLE_BYTES = 262_144
BUSY_RETRY_SECONDS = 5
_FIRST_DOUBTFUL = float(2**63)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_INTEGER = re.compile(rb"(?<![\d.eE+-])-?\d{19,}+(?![.eE])")


class Bodies:
    """All bodies that are held at once. Each takes its share as it grows and returns it when let go."""

    def __init__(self, max_buffered_bytes: int) -> None:
        self.max_buffered_bytes = max_buffered_bytes
        self.held_bytes = 0

    def hold(self) -> "Held":
        """A context in which one body grows; leaving it returns all it took."""
        return Held(self)


class Held:
    """One body's share of the memory for bodies."""

    __slots__ = ("_bodies", "size_bytes")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size_bytes = 0

    def __enter__(self) -> "Held":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bodies.held_bytes -= self.size_bytes
        self.size_bytes = 0

    def grow(self, size_bytes: int) -> None:
        """Take so many bytes more. Raises QueueFull if all bodies together would be too many."""
        bodies = self._bodies
        if bodies.held_bytes + size_bytes > bodies.max_buffered_bytes:
            raise QueueFull(
                "The gateway holds as many request bodies as it can. Try again shortly.",
                retry_after=BUSY_RETRY_SECONDS,
            )
        bodies.held_bytes += size_bytes
        self.size_bytes += size_bytes


async def read(headers: Iterable[tuple[bytes, bytes]], receive: Receive, held: Held, max_bytes: int) -> bytes:
    """The whole body. A body that is refused for what its head says is not asked for.

    Raises RequestTooLarge, UnsupportedMediaType, QueueFull; ClientClosed if the caller leaves.
    """
    _check_head(headers, max_bytes)
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientClosed("The caller left while sending.")
        part = message.get("body", b"")
        if held.size_bytes + len(part) > max_bytes:
            raise _too_large(max_bytes)
        held.grow(len(part))
        parts.append(part)
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises InvalidJson that says where it is broken, RequestTooLarge for more values than are worth the time.
    """
    if len(raw) > SURELY_LITTLE_BYTES:
        _check_work(raw)
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(_why(raw, error)) from error
    if type(body) is not dict:
        raise InvalidJson(f"The body must be a JSON object; it is {_kind(body)}.")
    if _doubtful_numbers(body):
        _check_integers(raw)
    return body


def _why(raw: bytes, error: orjson.JSONDecodeError) -> str:
    if not raw.strip():
        return "The body is empty; it must be a JSON object."
    if raw.startswith(BOM_UTF8):
        return "The body begins with a byte order mark; it must be a JSON object in UTF-8 without one."
    return f"The body is not valid JSON: {error}."


def _check_head(headers: Iterable[tuple[bytes, bytes]], max_bytes: int) -> None:
    for name, value in headers:
        if name == b"content-length" and int(value) > max_bytes:
            raise _too_large(max_bytes)
        if name == b"content-type" and value != b"application/json":
            _check_content_type(value)
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType(
                f"The body's encoding {quote(value.decode('latin-1'))} is not taken: send it uncompressed."
            )


def _check_content_type(value: bytes) -> None:
    kind, _, parameters = value.decode("latin-1").lower().partition(";")
    kind = kind.strip()
    charset = next(
        (p.partition("=")[2] for p in parameters.split(";") if p.strip().startswith("charset")), ""
    )
    is_json = kind == "application/json" or kind.endswith("+json")
    if kind and not (is_json and charset.strip(' "') in ("", "utf-8", "utf8")):
        raise UnsupportedMediaType(
            f"The content type {quote(value.decode('latin-1'))} is not taken here: "
            "send JSON in UTF-8 as 'Content-Type: application/json'."
        )


def _check_work(raw: bytes) -> None:
    """While a body is parsed everybody waits: ten million empty lists fit into 32 MB and take eight seconds.

    An object, a list or a name costs four times a plain value. What stands inside of strings is counted
    too; a text that is refused for it would be longer than any model's context.
    """
    containers, commas = raw.count(b"{") + raw.count(b"["), raw.count(b",")
    if 4 * (containers + commas) > MAX_WORK and 4 * (containers + raw.count(b":")) + commas > MAX_WORK:
        raise RequestTooLarge("The body holds more values than this gateway takes in one request.")


def _too_large(max_bytes: int) -> GatewayError:
    return RequestTooLarge(f"The body is larger than the {max_bytes} bytes that this gateway takes.")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _doubtful_numbers(body: dict[str, Any]) -> bool:
    """Walk the parsed body without recursion. Raises InvalidJson on depth over 128.

    Answers whether a float stands there that an integer beyond 64 bits may have become.
    """
    doubtful = False
    level: list[Any] = [body]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")
        below: list[Any] = []
        for value in level:
            for item in value.values() if type(value) is dict else value:
                kind = type(item)
                if kind is dict or kind is list:
                    below.append(item)
                elif kind is float and not -_FIRST_DOUBTFUL < item < _FIRST_DOUBTFUL:
                    doubtful = True
        level = below
    return doubtful


def _check_integers(raw: bytes) -> None:
    for found in _INTEGER.finditer(_STRING.sub(b'""', raw)):
        if not -(2**63) <= int(found[0][:40]) < 2**64:
            raise InvalidJson("The body holds an integer beyond 64 bits.")
