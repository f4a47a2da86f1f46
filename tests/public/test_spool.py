"""Uploads in a spool: little in memory, the rest in a file without a name, all of it given back."""

import asyncio
import gc
import os
from pathlib import Path

import pytest

from gateway.errors import QueueFull, StorageFull
from gateway.public.body import ON_DISK_TIMES, Bodies
from gateway.public.spool import IN_MEMORY_BYTES, Spool

MIB = 1 << 20
PART = os.urandom(100_000)


async def content(spool: Spool) -> bytes:
    """All that it holds, read from its start."""
    found = b""
    while piece := await spool.read(len(found)):
        found += piece
    return found


def open_files(folder: Path) -> int:
    """How many files of this folder the process has open."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(str(link.readlink()).startswith(str(folder)) for link in links if link.is_symlink())


def names_in(folder: Path) -> list[str]:
    """What anybody can see there."""
    return [path.name for path in folder.glob("*")]


async def closed(folder: Path) -> None:
    """Wait until none is open."""
    async with asyncio.timeout(60):
        while open_files(folder):  # noqa: ASYNC110  # a file that is closed sends no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("parts", [0, 1, 10, 11, 100])
async def test_what_was_written_is_read_as_often_as_it_is_asked_for(tmp_path: Path, parts: int) -> None:
    """From memory, from the file, and across both; what is in memory is never more than its share."""
    bodies = Bodies(100 * MIB)
    with bodies.hold() as held:
        spool = Spool(tmp_path / "made" / "spool", held)
        for _ in range(parts):
            await spool.append(PART)
            assert bodies.held_bytes <= IN_MEMORY_BYTES
        assert spool.size_bytes == parts * len(PART) == bodies.held_bytes + bodies.on_disk_bytes
        for _ in range(2):
            assert await content(spool) == PART * parts
        assert names_in(tmp_path / "made" / "spool") == []
        assert open_files(tmp_path) == (1 if parts > 10 else 0)
        spool.close()
        spool.close()
    assert (bodies.held_bytes, bodies.on_disk_bytes) == (0, 0)
    await closed(tmp_path)


async def test_a_part_larger_than_memory_goes_to_the_file(tmp_path: Path) -> None:
    """Unpacked bodies come in large pieces."""
    with Bodies(100 * MIB).hold() as held:
        spool = Spool(tmp_path, held)
        for _ in range(3):
            await spool.append(bytes(3 * MIB))
        assert len(await content(spool)) == 9 * MIB
        spool.close()
    await closed(tmp_path)


async def test_closing_in_the_midst_of_a_read_or_a_write_leaves_nothing_open(tmp_path: Path) -> None:
    """A caller may leave while a thread is at the file, or before it is made."""
    for steps in range(6):
        with Bodies(100 * MIB).hold() as held:
            spool = Spool(tmp_path, held)

            async def work(spool: Spool = spool) -> None:
                await spool.append(bytes(MIB))
                await spool.append(bytes(MIB))
                await content(spool)

            task = asyncio.create_task(work())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            spool.close()
    await closed(tmp_path)
    gc.collect()  # a file that was let go open would warn here


async def test_a_disk_that_takes_no_more_is_507(tmp_path: Path) -> None:
    """The operator reads why."""
    (tmp_path / "spool").write_text("no folder")
    with Bodies(100 * MIB).hold() as held:
        spool = Spool(tmp_path / "spool", held)
        await spool.append(bytes(MIB))
        with pytest.raises(StorageFull) as refused:
            await spool.append(bytes(MIB))
        assert "spool" in (refused.value.cause or "")
        assert str(tmp_path) not in refused.value.message
        spool.close()


async def test_the_disk_has_a_bound_too(tmp_path: Path) -> None:
    """Sixteen times that of memory, for all uploads together; what was taken is given back."""
    bodies = Bodies(2 * MIB)
    with bodies.hold() as held:
        spool = Spool(tmp_path, held)
        for _ in range(2 * ON_DISK_TIMES + 1):
            await spool.append(bytes(MIB))
        with pytest.raises(QueueFull):
            await spool.append(bytes(MIB))
        assert bodies.on_disk_bytes == ON_DISK_TIMES * 2 * MIB
        spool.close()
    assert (bodies.held_bytes, bodies.on_disk_bytes) == (0, 0)
    await closed(tmp_path)
