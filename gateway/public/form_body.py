"""A form on its way to the engine: heads and fields from memory, the file from its spool."""

from collections.abc import Sequence

from gateway.public.part import Part
from gateway.public.spool import Spool


class FormBody:
    """A body of known size that can be read more than once."""

    def __init__(self, parts: Sequence[Part], spool: Spool, boundary: str) -> None:
        line = f"--{boundary}\r\n".encode()
        before, after = bytearray(), bytearray()
        text = before
        for part in parts:
            text += line + part.head()
            if part.filename is None:
                text += part.value
            else:
                text = after
            text += b"\r\n"
        text += f"--{boundary}--\r\n".encode()
        self._before, self._after, self._spool = bytes(before), bytes(after), spool
        self.size_bytes = len(before) + spool.size_bytes + len(after)

    async def read(self, start: int) -> bytes:
        """Some bytes from `start` on. Raises OSError."""
        if start < len(self._before):
            return self._before[start:]
        start -= len(self._before)
        if start < self._spool.size_bytes:
            return await self._spool.read(start)
        return self._after[start - self._spool.size_bytes :]
