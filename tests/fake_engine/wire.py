"""Requests as bytes: just enough of HTTP/1.1 to read what a client sends, and to keep it as it came."""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class Request:
    """One request: the request line's parts, headers raw and in order, and the body once it is read."""

    method: str
    target: str
    version: str
    headers: Headers
    connection: int = 0
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def as_json(self) -> dict[str, Any]:
        """For the control port; the body is in base64."""
        return {
            "method": self.method,
            "target": self.target,
            "version": self.version,
            "headers": self.headers,
            "connection": self.connection,
            "body_b64": base64.b64encode(self.body).decode(),
        }


async def read_head(reader: asyncio.StreamReader) -> Request | None:
    """The next request without its body; None if the connection ends before one is whole."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *fields = raw[:-4].decode("latin-1").split("\r\n")
    method, target, version = line.split(" ")
    headers = [(name, value.strip()) for name, _, value in (field.partition(":") for field in fields)]
    return Request(method, target, version, headers)


async def read_body(reader: asyncio.StreamReader, request: Request) -> bytes:
    """The body that belongs to this head. Raises IncompleteReadError if the connection ends in it."""
    fields = {name.lower(): value for name, value in request.headers}
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    return await reader.readexactly(int(fields.get("content-length", "0")))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return b"".join(parts)
