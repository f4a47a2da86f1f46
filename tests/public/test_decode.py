"""Compressed bodies are unpacked whole or refused, in pieces, whatever they were made to become."""

import asyncio
import gzip
import os
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

import pytest
import zstandard

from gateway.errors import InvalidRequest
from gateway.public.decode import CODINGS, MAX_FRAMES, PIECE_BYTES, expand

TEXT = b'{"model":"m","messages":[' + b",".join(b'{"content":"%d"}' % n for n in range(20_000)) + b"]}"
NOISE = os.urandom(300_000)
MIB = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    """Without zlib's header, as some clients understand `deflate`."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "zstd": ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress),
    "zstd, long": ("zstd", zstandard.ZstdCompressor(level=15).compress),
}


async def one_by_one(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The parts, as a connection would bring them."""
    for part in parts:
        yield part


async def unpacked(coding: str, parts: Iterable[bytes]) -> bytes:
    """All that they become."""
    return b"".join([piece async for piece in expand(one_by_one(parts), coding)])


def cut(data: bytes, size: int) -> list[bytes]:
    """In parts of so many bytes, with an empty one between."""
    return [part for start in range(0, len(data), size) for part in (data[start : start + size], b"")]


@pytest.mark.parametrize("data", [b"", b"{}", TEXT, NOISE, bytes(PIECE_BYTES), bytes(4 * PIECE_BYTES + 1)])
@pytest.mark.parametrize("name", PACKERS)
async def test_what_was_packed_comes_out(name: str, data: bytes) -> None:
    """In one part or in many."""
    coding, pack = PACKERS[name]
    packed = pack(data)
    for size in (1 if len(packed) < 100 else 1013, 65_536, len(packed)):
        assert await unpacked(coding, cut(packed, size)) == data


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_several_frames_are_one_body(name: str) -> None:
    """As the formats allow, wherever the parts are cut."""
    coding, pack = PACKERS[name]
    packed = pack(b"one ") + pack(b"") + pack(b"two")
    for size in (1, 7, len(packed)):
        assert await unpacked(coding, cut(packed, size)) == b"one two"


@pytest.mark.parametrize("name", PACKERS)
async def test_what_is_broken_is_refused(name: str) -> None:
    """Cut short anywhere, continued with something else, changed within, not packed at all, or nothing."""
    coding, pack = PACKERS[name]
    packed = pack(TEXT)
    changed = bytearray(packed)
    changed[2 if name == "raw deflate" else 5 : len(packed) // 2] = os.urandom(100)
    broken = [packed[:-1], packed[: len(packed) // 2], packed[:3], packed[:1], b"", b'{"model":"m"}']
    for data in (*broken, packed + b"{}", packed + b"\0", bytes(changed)):
        for size in (1013, len(data) or 1):
            with pytest.raises(InvalidRequest) as refused:
                await unpacked(coding, cut(data, size))
            assert coding in refused.value.message


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_frames_have_a_number(name: str) -> None:
    """Each costs a decompressor, however little it holds."""
    coding, pack = PACKERS[name]
    assert await unpacked(coding, [pack(b"") * MAX_FRAMES]) == b""
    with pytest.raises(InvalidRequest, match="frames"):
        await unpacked(coding, [pack(b"") * (MAX_FRAMES + 1)])


async def test_a_zstd_window_larger_than_the_standard_allows_is_refused() -> None:
    """It would be allocated before a byte of the body is known."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(TEXT) + packer.flush()
    with pytest.raises(InvalidRequest):
        await unpacked("zstd", [packed])


def bomb(name: str) -> bytes:
    """What becomes 64 MiB."""
    if name == "zstd":
        packer: Any = zstandard.ZstdCompressor(level=1).compressobj()
    else:
        packer = zlib.compressobj(1, wbits={"gzip": 31, "zlib": 15, "raw deflate": -15}[name])
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(64)), packer.flush()])


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "zstd"])
async def test_a_bomb_costs_no_more_than_is_read_of_it(name: str) -> None:
    """Who stops at a limit has held little, and others had their turns meanwhile."""
    coding, _ = PACKERS[name]
    packed, read_bytes, largest_bytes, turns = bomb(name), 0, 0, 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(other())
    await asyncio.sleep(0)
    turns = 0
    tracemalloc.start()
    try:
        async with aclosing(expand(one_by_one([packed]), coding)) as pieces:
            async for piece in pieces:
                read_bytes += len(piece)
                largest_bytes = max(largest_bytes, len(piece))
                if read_bytes > 60 * MIB:
                    break
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        others.cancel()
    assert largest_bytes < 5 * MIB
    assert peak_bytes < 10 * MIB
    assert turns


def test_every_coding_is_tested() -> None:
    """A new one comes with its packer."""
    assert {coding for coding, _ in PACKERS.values()} == set(CODINGS)
