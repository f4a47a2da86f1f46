"""A transport that can gather what is written to it: two small writes become one packet."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Corked:
    """Wraps a transport. As a context manager it holds back what is written inside until its end."""

    __slots__ = ("_held", "_transport", "_write")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._write: Callable[[bytes], None] = transport.write
        self._held: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def __enter__(self) -> None:
        self._held = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()

    def write(self, data: bytes) -> None:
        """Write, or hold back."""
        if self._held is None:
            self._write(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        """Write what is held, then close the transport."""
        self.flush()
        self._transport.close()

    def lose(self) -> None:
        """The connection is gone: what is still written goes nowhere. uvloop's own transport would raise."""
        self._write = _nowhere

    def flush(self) -> None:
        """Write what is held and hold no more."""
        held, self._held = self._held, None
        if held:
            self._write(b"".join(held))


def _nowhere(_data: bytes) -> None:
    """Nobody reads it any more."""
