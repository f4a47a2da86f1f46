"""A caller on a raw socket, who may send what no HTTP library would, and sees each byte of the answer."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.running import PATIENCE_SECONDS, Gateway

MODEL = "fake-model"
CHAT = "/v1/chat/completions"
CALL: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
ANSWER_SECONDS = PATIENCE_SECONDS

Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One response: header names in lower case, and how many interim responses came before it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    interim: int

    @property
    def error(self) -> dict[str, Any]:
        """The error object; fails if the body is not exactly OpenAI's shape in JSON."""
        assert self.headers["content-type"] == "application/json", self
        return error_of(json.loads(self.body))


class Caller:
    """`async with Caller(gateway) as caller`: one connection to the public port."""

    def __init__(self, gateway: Gateway) -> None:
        self._address = address(gateway)

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send bytes as they are. Raises ConnectionError if the gateway has closed."""
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, seconds: float = ANSWER_SECONDS, *, to_head: bool = False) -> Answer:
        """The next whole response. Fails if none comes in time or the connection ends before."""
        async with asyncio.timeout(max(seconds, ANSWER_SECONDS)):
            return await self._answer(to_head)

    async def head(self) -> tuple[int, dict[str, str]]:
        """The next status and headers; the body is still to be read."""
        line, *fields = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        pairs = [field.partition(":") for field in fields]
        names = [name.lower() for name, _, _ in pairs]
        assert len(names) == len(set(names)), f"a header came twice: {fields}"
        return int(line.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def until(self, text: bytes, seconds: float = ANSWER_SECONDS) -> bytes:
        """All bytes up to and with these."""
        async with asyncio.timeout(max(seconds, ANSWER_SECONDS)):
            return await self._reader.readuntil(text)

    async def exactly(self, size_bytes: int) -> bytes:
        """The next so many bytes."""
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._reader.readexactly(size_bytes)

    async def rest(self, seconds: float = ANSWER_SECONDS) -> bytes:
        """All bytes until the gateway closes the connection, by FIN or by RST; fails if it does not."""
        received = b""
        async with asyncio.timeout(max(seconds, ANSWER_SECONDS)):
            try:
                while data := await self._reader.read(65_536):
                    received += data
            except ConnectionError:
                pass
        return received

    def close_sending(self) -> None:
        """Say that nothing more will be sent."""
        self._writer.write_eof()

    async def _answer(self, to_head: bool) -> Answer:
        interim = 0
        status, headers = await self.head()
        while status < 200:
            interim += 1
            status, headers = await self.head()
        body = b"" if to_head or status == 204 else await self._body(headers)
        return Answer(status, headers, body, interim)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "content-length" in headers:
            return await self._reader.readexactly(int(headers["content-length"]))
        assert headers["transfer-encoding"] == "chunked", headers
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(parts)


def address(gateway: Gateway) -> tuple[str, int]:
    """Host and port of the public listener."""
    host, _, port = gateway.url.removeprefix("http://").rpartition(":")
    return host.strip("[]"), int(port)


async def send_all_then_read(gateway: Gateway, head: bytes, piece: bytes, pieces: int) -> bytes:
    """All that a client reads which writes its whole request first, whatever becomes of the connection."""
    return await asyncio.to_thread(_send_all_then_read, gateway, head, piece, pieces)


def _send_all_then_read(gateway: Gateway, head: bytes, piece: bytes, pieces: int) -> bytes:
    with socket.create_connection(address(gateway), timeout=ANSWER_SECONDS) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(head)
            for _ in range(pieces):
                connection.sendall(piece)
        received = b""
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(65_536):
                received += data
    return received


def request(
    method: str, target: str, fields: Fields = (), body: bytes | None = None, *, version: str = "1.1"
) -> bytes:
    """A request as bytes; with a body, its length and, if none is given, JSON as its type are added."""
    lines = [f"{method} {target} HTTP/{version}", "host: gateway.test"]
    lines += [f"{name}: {value}" for name, value in fields]
    if body is not None:
        lines += (
            [] if any(name == "content-type" for name, _ in fields) else ["content-type: application/json"]
        )
        lines += [f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def chat(
    key: str, body: bytes | None = None, fields: Fields = (), *, version: str = "1.1", **more: Any
) -> bytes:
    """A chat call as bytes: these, or the usual one with `more` fields."""
    sent = json.dumps({**CALL, **more}).encode() if body is None else body
    return request("POST", CHAT, [("authorization", f"Bearer {key}"), *fields], sent, version=version)


def error_of(document: Any) -> dict[str, Any]:
    """The error object of a body that is exactly OpenAI's shape."""
    assert set(document) == {"error"}, document
    error: dict[str, Any] = document["error"]
    assert set(error) == {"message", "type", "param", "code"}, error
    assert all(type(error[name]) is str for name in ("message", "type", "code")), error
    return error


async def ask(gateway: Gateway, data: bytes, *, to_head: bool = False) -> Answer:
    """The answer to these bytes on a connection of their own."""
    async with Caller(gateway) as caller:
        await caller.send(data)
        return await caller.answer(to_head=to_head)
