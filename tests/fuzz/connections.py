"""One connection of a fuzz: bytes in pieces, an end, and what came back, read as HTTP answers."""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.callers import address
from tests.running import Gateway

End = Literal["read", "half", "close", "reset"]

# By this a gateway that has hung is known; one that has not ends each connection after some ten seconds.
HUNG_SECONDS = 180.0
AT_ONCE = 128
PATIENT_SECONDS = 8.0  # less than the gateway waits for the rest of a request
KEY = b"sk-gw-" + b"k" * 12 + b"-" + b"K" * 43  # as long as any of ours
LINGER_NOT = struct.pack("ii", 1, 0)
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [ -~]*\r\n")


@dataclass(frozen=True, slots=True)
class Script:
    """What one caller does: writes `data` in pieces of `step` bytes, then `end`.

    `end`: "read" until the gateway ends the connection; "half" the same, but its own side closed before;
    "close" and "reset" leave without reading. `answers`: how many there must be, if that is known.
    """

    name: str
    data: bytes
    step: int = 1_000_000
    end: End = "read"
    answers: int | None = None

    def pieces(self, key: str) -> list[bytes]:
        """What is written, one after the other, with this key in the place of `KEY`."""
        data = self.data.replace(KEY, key.encode())
        return [data[start : start + self.step] for start in range(0, len(data), self.step)]


@dataclass(frozen=True, slots=True)
class Told:
    """One answer, interim ones included."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back before the connection ended. `stood_still`: the gateway may have given up waiting."""

    data: bytes
    stood_still: bool


async def play(gateway: Gateway, scripts: Sequence[Script], key: str) -> list[Heard]:
    """What each script got to read until the gateway ended its connection; fails if it does not."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(script: Script) -> Heard:
        async with slots:
            started = time.monotonic()
            try:
                async with asyncio.timeout(HUNG_SECONDS):
                    data = await _play(gateway, script, key)
                return Heard(data, time.monotonic() - started > PATIENT_SECONDS)
            except TimeoutError:
                raise AssertionError(f"not ended after {HUNG_SECONDS} s: {script}") from None

    return list(await asyncio.gather(*map(one, scripts)))


async def _play(gateway: Gateway, script: Script, key: str) -> bytes:
    """Sockets alone: asyncio's streams forget what has been read when writing fails."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, address(gateway))
        reading = asyncio.create_task(_read(connection))
        try:
            await _write(connection, script.pieces(key))
            if script.end == "half":
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
            if script.end in ("read", "half"):
                return await reading
            if script.end == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            return b""
        finally:
            reading.cancel()
            await asyncio.wait([reading])


async def _write(connection: socket.socket, pieces: Sequence[bytes]) -> None:
    with contextlib.suppress(ConnectionError):  # the gateway may have answered and ended it
        for piece in pieces:
            await asyncio.get_running_loop().sock_sendall(connection, piece)
            await asyncio.sleep(0)


async def _read(connection: socket.socket) -> bytes:
    received = []
    with contextlib.suppress(ConnectionError):
        while data := await asyncio.get_running_loop().sock_recv(connection, 65_536):
            received.append(data)
    return b"".join(received)


def answers(received: bytes) -> list[Told]:
    """The answers in what a connection has read. Raises ValueError if it is anything but whole answers.

    An answer to HEAD is known by what follows it: our bodies never begin as a status line does.
    """
    found = []
    while received:
        told, received = _next(received)
        found.append(told)
    return found


def _next(data: bytes) -> tuple[Told, bytes]:
    status = _STATUS.match(data)
    head, end, rest = data.partition(b"\r\n\r\n")
    if status is None or not end:
        raise ValueError(f"no status line and head: {data[:300]!r}")
    pairs = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    headers = {name.decode("latin-1").lower(): value.strip().decode("latin-1") for name, _, value in pairs}
    if len(headers) != len(pairs):
        raise ValueError(f"a header came twice: {head!r}")
    body, rest = _body(headers, rest) if int(status[1]) >= 200 else (b"", rest)
    return Told(int(status[1]), headers, body), rest


def _body(headers: Mapping[str, str], data: bytes) -> tuple[bytes, bytes]:
    if not data or data.startswith(b"HTTP/1.1 "):
        return b"", data
    if "content-length" in headers:
        size = int(headers["content-length"])
        if len(data) < size:
            raise ValueError(f"the body is short of {size} bytes: {data!r}")
        return data[:size], data[size:]
    if headers.get("transfer-encoding") != "chunked":
        raise ValueError(f"a body without a length: {headers}")
    parts = []
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        if len(data) < size + 2:
            raise ValueError("the last chunk is short")
        parts.append(data[:size])
        data = data[size + 2 :]
        if not size:
            return b"".join(parts), data
