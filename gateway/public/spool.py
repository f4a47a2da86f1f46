"""An upload on its way through: a little of it in memory, the rest in a file that has no name.

The file is unlinked as soon as it is made, so nothing stays behind whatever becomes of the process. The event
loop never waits for the disk, not even for a large file to be given back.
"""

import asyncio
import os
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

from gateway.errors import StorageFull
from gateway.public.body import Held

IN_MEMORY_BYTES = 1_048_576
PIECE_BYTES = 262_144


class Spool:
    """Bytes that are appended first and then read from anywhere, by one task at a time.

    `close` may be called at any time, in the midst of a read too, and again.
    """

    def __init__(self, folder: Path, held: Held) -> None:
        self.size_bytes = 0
        self._folder = folder
        self._held = held
        self._tail = bytearray()
        self._in_file_bytes = 0
        self._file: BinaryIO | None = None
        self._uses_file = self._closed = False
        self._lock = threading.Lock()  # the caller may leave while a thread is at the file

    async def append(self, data: bytes) -> None:
        """Take these bytes. Raises QueueFull if bodies hold all that they may, StorageFull on a full disk."""
        if len(self._tail) + len(data) > IN_MEMORY_BYTES:
            await self._spill()
        self._held.grow(len(data))
        self._tail += data
        self.size_bytes += len(data)

    async def read(self, start: int) -> bytes:
        """Up to 256 KiB from `start` on; b"" at the end. Raises OSError."""
        if start < self._in_file_bytes:
            return await asyncio.to_thread(self._read, start)
        offset = start - self._in_file_bytes
        return bytes(self._tail[offset : offset + PIECE_BYTES])

    def close(self) -> None:
        """Let go of memory and file."""
        if self._closed:
            return
        self._closed = True
        self._tail.clear()
        if self._uses_file:
            asyncio.get_running_loop().run_in_executor(None, self._close)

    async def _spill(self) -> None:
        spilt, self._tail = self._tail, bytearray()
        self._held.spill(len(spilt))
        self._uses_file = True
        try:
            await asyncio.to_thread(self._write, spilt)
        except OSError as error:
            raise StorageFull(
                "The gateway has no room for this upload. Tell its operator.", cause=str(error)
            ) from error
        self._in_file_bytes += len(spilt)

    # In threads

    def _write(self, data: bytearray) -> None:
        with self._lock:
            if self._file is None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  # see close
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]

    def _read(self, start: int) -> bytes:
        with self._lock:
            if self._file is None or self._file.closed:
                raise OSError("the spool is closed")
            return os.pread(self._file.fileno(), min(PIECE_BYTES, self._in_file_bytes - start), start)

    def _close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
