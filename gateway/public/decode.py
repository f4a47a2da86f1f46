"""Compressed bodies, unpacked as they arrive: no step makes more than a few megabytes or takes long.

What a body unpacks to is counted by who reads it, piece by piece, so a bomb ends at the limit for bodies.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import zstandard

from gateway.errors import InvalidRequest
from gateway.public.turn import Turn

PIECE_BYTES = 262_144
ZSTD_SLICE_BYTES = 128  # zstd has no bound for what it makes of its input: four bytes are 128 KiB at most
ZSTD_WINDOW_BYTES = 8_388_608  # RFC 9659: no more in the content coding
MAX_FRAMES = 1024
_GZIP, _ZLIB, _RAW = 31, 15, -15  # the `wbits` that make zlib expect this header or none


async def expand(parts: AsyncIterator[bytes], coding: str) -> AsyncGenerator[bytes]:
    """What the parts unpack to; `coding` is one of CODINGS.

    Raises InvalidRequest for what is not this coding, is not whole, or has more after its end.
    """
    frames = CODINGS[coding]()
    turn = Turn()
    async for part in parts:
        for piece in frames.feed(part):
            if piece:
                yield piece
            await turn.end()
    frames.end()


class _Frames:
    """One compressed frame after the other. `start` makes the decompressor of one, `step` lets it work."""

    def __init__(self, name: str, start: Callable[[], Any], step: Callable[[Any, bytes], Any]) -> None:
        self._name = name
        self._start = start
        self._step = step
        self._frame: Any = None
        self._count = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What can be made of these bytes; some pieces are empty."""
        more = bool(data)
        while more:
            frame = self._frame = self._frame or self._next_frame()
            try:
                piece, data = self._step(frame, data)
            except (zlib.error, zstandard.ZstdError) as error:
                raise self._invalid(f"is not valid {self._name}", cause=str(error)) from error
            more = bool(data) or len(piece) >= PIECE_BYTES
            if frame.eof:
                self._frame, more = None, bool(data)
            yield piece

    def end(self) -> None:
        """No more will come. Raises InvalidRequest if something is missing."""
        if self._frame is not None or not self._count:
            raise self._invalid("is cut short" if self._count else "is empty")

    def _next_frame(self) -> Any:
        self._count += 1
        if self._count > MAX_FRAMES:
            raise self._invalid(f"has more than {MAX_FRAMES} frames")
        return self._start()

    def _invalid(self, what: str, *, cause: str | None = None) -> InvalidRequest:
        return InvalidRequest(f"The body {what}; its Content-Encoding says {self._name}.", cause=cause)


class _Deflate(_Frames):
    """One stream, with zlib's header as the standard has it, or without, as many clients send it."""

    def __init__(self) -> None:
        super().__init__("deflate", self._begin, _inflate)
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._count:
            return super().feed(data)
        self._head += data
        return super().feed(self._head) if len(self._head) > 1 else iter(())

    def _begin(self) -> Any:
        if self._count > 1:
            raise self._invalid("goes on after its end")
        has_header = self._head[0] & 15 == 8 and int.from_bytes(self._head[:2], "big") % 31 == 0
        return zlib.decompressobj(_ZLIB if has_header else _RAW)


def _inflate(frame: Any, data: bytes) -> tuple[bytes, bytes]:
    piece = frame.decompress(data, PIECE_BYTES)
    return piece, frame.unused_data if frame.eof else frame.unconsumed_tail


def _unzstd(frame: Any, data: bytes) -> tuple[bytes, bytes]:
    made, made_bytes, rest = [], 0, memoryview(data)
    while rest and made_bytes < PIECE_BYTES and not frame.eof:
        made.append(frame.decompress(rest[:ZSTD_SLICE_BYTES]))
        made_bytes += len(made[-1])
        rest = rest[ZSTD_SLICE_BYTES:]
    return b"".join(made), frame.unused_data + bytes(rest) if frame.eof else bytes(rest)


def _zstd_frame() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()


CODINGS: dict[str, Callable[[], _Frames]] = {
    "gzip": partial(_Frames, "gzip", partial(zlib.decompressobj, _GZIP), _inflate),
    "deflate": _Deflate,
    "zstd": partial(_Frames, "zstd", _zstd_frame, _unzstd),
}
