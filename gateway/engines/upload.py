"""A request's body that does not stand in memory: read while it is sent, as fast as the engine takes it."""

import asyncio
from typing import Protocol

from gateway.errors import reason_of


class Source(Protocol):
    """A body of known size that is read piece by piece, and from its start if it must be sent again."""

    @property
    def size_bytes(self) -> int:
        """How long the whole body is."""

    async def read(self, start: int) -> bytes:
        """Some bytes from `start` on, at least one while `start` is below the size. Raises OSError."""


Body = bytes | Source


class Sink(Protocol):
    """What an upload needs of a connection."""

    def put(self, piece: bytes) -> asyncio.Future[None] | None:
        """Write a piece; answers what to wait for before the next one."""

    def put_all(self) -> None:
        """The body is whole."""

    def break_off(self, reason: str) -> None:
        """The body cannot be made whole: end the connection."""


async def send(source: Source, sink: Sink) -> None:
    """Write all of the source. Cancelling this sends no more of it."""
    sent_bytes, size_bytes = 0, source.size_bytes
    try:
        while sent_bytes < size_bytes:
            piece = await source.read(sent_bytes)
            sent_bytes += len(piece)
            if not piece or sent_bytes > size_bytes:
                raise EOFError("it is not as long as was announced")  # noqa: TRY301
            if (ready := sink.put(piece)) is not None:
                await ready
    except (OSError, EOFError) as error:
        sink.break_off(f"the request's body could not be read: {reason_of(error)}")
    else:
        sink.put_all()
