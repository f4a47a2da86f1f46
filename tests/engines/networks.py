"""Networks that do not answer, and names that resolve as a test wants it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def black_hole(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A port at which connecting hangs: its queue of unaccepted connections is full."""
    with socket.socket() as listener:
        listener.bind((host, port))
        listener.listen(0)
        address = listener.getsockname()
        queued = [socket.socket() for _ in range(4)]
        for connection in queued:
            connection.setblocking(False)
            connection.connect_ex(address)
        yield address[1]
        for connection in queued:
            connection.close()


def resolve(monkeypatch: pytest.MonkeyPatch, *answers: list[str] | OSError | None) -> list[str]:
    """Let the running loop resolve names so, one answer after the other, the last for good; the names asked.

    An answer is a list of addresses, an error, or None: there will be none.
    """
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(host)
        if isinstance(answer, OSError):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer or ()]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked
