"""A scripted server where Caddy expects the gateway: the test decides when it writes, and sees who leaves."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Self

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass
class Request:
    """What arrived: the head as text, and whether the connection has ended since."""

    head: str
    departed: asyncio.Event = field(default_factory=asyncio.Event)


class Upstream:
    """`async with Upstream(port) as upstream`: /stream, /silent, /hang-up, /refuse, /accept, else an echo.

    `requests` receives each request; what is put into `events` is sent to the streams, None ends them.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: asyncio.Queue[Request] = asyncio.Queue()
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._serving: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=1 << 20)
        return self

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request = Request(head)
                self.requests.put_nowait(request)
                await self._answer(request, reader, writer)

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        path = request.head.split(" ")[1].partition("?")[0]
        length = _content_length(request.head)
        match path:
            case "/stream" | "/silent":
                await reader.readexactly(length)
                await self._hold(request, reader, writer, streams=path == "/stream")
            case "/hang-up":
                raise ConnectionResetError
            case "/refuse":
                _respond(writer, "401 Unauthorized", b'{"error":{}}')
                await reader.read(1)
                request.departed.set()
            case "/accept":
                if "expect: 100-continue" in request.head.lower():
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                _respond(writer, "200 OK", await reader.readexactly(length))
            case _:
                await reader.readexactly(length)
                _respond(writer, "200 OK", json.dumps({"head": request.head}).encode())

    async def _hold(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, streams: bool
    ) -> None:
        left = asyncio.create_task(reader.read(1))
        sending = asyncio.create_task(self._stream(writer) if streams else asyncio.Event().wait())
        try:
            done, _ = await asyncio.wait({left, sending}, return_when=asyncio.FIRST_COMPLETED)
            if left in done:
                request.departed.set()
                raise ConnectionResetError
        finally:
            left.cancel()
            sending.cancel()
            await asyncio.gather(left, sending, return_exceptions=True)

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        while (event := await self.events.get()) is not None:
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
        writer.write(b"0\r\n\r\n")


def _content_length(head: str) -> int:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


def _respond(writer: asyncio.StreamWriter, status: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
