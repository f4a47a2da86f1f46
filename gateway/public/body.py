"""A request's body on its way in: how much of it is taken, and what all bodies hold at once.

What the bytes mean is told elsewhere: `document` reads JSON, `form` an upload.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType

from starlette.types import Receive

from gateway.errors import ClientClosed, QueueFull
from gateway.public import decode
from gateway.public.head import Headers, check_json, too_large
from gateway.usage import Record

BUSY_RETRY_SECONDS = 5
ON_DISK_TIMES = 16


class Bodies:
    """All bodies that are held at once. Each takes its share as it grows and returns it when let go."""

    def __init__(self, max_buffered_bytes: int) -> None:
        self.max_buffered_bytes = max_buffered_bytes
        self.held_bytes = 0
        self.on_disk_bytes = 0
        self.bytes_of: dict[str, int] = {}

    def hold(self, owner: str = "", largest_bytes: int = 0) -> "Held":
        """A context in which one body grows; leaving it returns all it took.

        Those of one `owner` leave others a sixteenth of the room, unless one of `largest_bytes` needs it.
        """
        most_bytes = self.max_buffered_bytes
        if owner:
            most_bytes = max(largest_bytes, most_bytes - most_bytes // 16)
        return Held(self, owner, most_bytes)

    def take(self, owner: str, size_bytes: int) -> None:
        """Count so many bytes more, or less."""
        self.held_bytes += size_bytes
        own_bytes = self.bytes_of.get(owner, 0) + size_bytes
        if own_bytes:
            self.bytes_of[owner] = own_bytes
        else:
            self.bytes_of.pop(owner, None)


class Held:
    """One body's share of the memory for bodies, and of the disk."""

    __slots__ = ("_bodies", "_most_bytes", "_owner", "on_disk_bytes", "size_bytes")

    def __init__(self, bodies: Bodies, owner: str, most_bytes: int) -> None:
        self._bodies = bodies
        self._owner = owner
        self._most_bytes = most_bytes
        self.size_bytes = 0
        self.on_disk_bytes = 0

    def __enter__(self) -> "Held":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Return all that was taken."""
        self._bodies.take(self._owner, -self.size_bytes)
        self._bodies.on_disk_bytes -= self.on_disk_bytes
        self.size_bytes = self.on_disk_bytes = 0

    def grow(self, size_bytes: int) -> None:
        """Take so many bytes more. Raises QueueFull if all bodies, or this owner's, would be too many."""
        bodies = self._bodies
        own_bytes = bodies.bytes_of.get(self._owner, 0) + size_bytes
        if bodies.held_bytes + size_bytes > bodies.max_buffered_bytes or own_bytes > self._most_bytes:
            raise _busy()
        bodies.take(self._owner, size_bytes)
        self.size_bytes += size_bytes

    def spill(self, size_bytes: int) -> None:
        """So many bytes move from memory to the disk, which holds 16 times as much. Raises QueueFull."""
        bodies = self._bodies
        if bodies.on_disk_bytes + size_bytes > ON_DISK_TIMES * bodies.max_buffered_bytes:
            raise _busy()
        bodies.take(self._owner, -size_bytes)
        self.size_bytes -= size_bytes
        bodies.on_disk_bytes += size_bytes
        self.on_disk_bytes += size_bytes


async def read(headers: Headers, receive: Receive, held: Held, max_bytes: int, record: Record) -> bytes:
    """The whole JSON body, unpacked. A body that is refused for what its head says is not asked for.

    Raises RequestTooLarge, UnsupportedMediaType, QueueFull, InvalidRequest if it cannot be unpacked;
    ClientClosed if the caller leaves.
    """
    coding = check_json(headers, max_bytes)
    if coding:
        return await _read_packed(coding, receive, held, max_bytes, record)
    whole = bytearray()  # no list: callers who send two bytes at a time would fill it with objects
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _left()
        part: bytes = message.get("body", b"")
        if held.size_bytes + len(part) > max_bytes:
            raise too_large(max_bytes)
        held.grow(len(part))
        more = message.get("more_body", False)
        if more or whole:
            whole += part
    record.read = time.monotonic()
    return bytes(whole) if whole else part


async def arriving(coding: str, receive: Receive, max_bytes: int, record: Record) -> AsyncGenerator[bytes]:
    """A body's bytes as they come, unpacked, in no more than `max_bytes` packed and unpacked; held by nobody.

    Raises as `read`.
    """
    parts = _parts(receive, max_bytes, record)
    unpacked_bytes = 0
    async with aclosing(parts), aclosing(decode.expand(parts, coding) if coding else parts) as pieces:
        async for piece in pieces:
            unpacked_bytes += len(piece)
            if unpacked_bytes > max_bytes:
                raise too_large(max_bytes)
            yield piece


async def _read_packed(coding: str, receive: Receive, held: Held, max_bytes: int, record: Record) -> bytes:
    whole = bytearray()
    async with aclosing(arriving(coding, receive, max_bytes, record)) as pieces:
        async for piece in pieces:
            held.grow(len(piece))
            whole += piece
    return bytes(whole)


async def _parts(receive: Receive, max_bytes: int, record: Record) -> AsyncGenerator[bytes]:
    size_bytes, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _left()
        part = message.get("body", b"")
        size_bytes += len(part)
        if size_bytes > max_bytes:
            raise too_large(max_bytes)
        more = message.get("more_body", False)
        if not more:
            record.read = time.monotonic()
        yield part


def _left() -> ClientClosed:
    return ClientClosed("The caller left while sending.")


def _busy() -> QueueFull:
    return QueueFull(
        "The gateway holds as many request bodies as it can. Try again shortly.",
        retry_after=BUSY_RETRY_SECONDS,
    )
