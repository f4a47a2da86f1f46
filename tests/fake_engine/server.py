"""The engine's own port: reads requests, plays scripts, notices at once when a peer has gone."""

import asyncio
import base64
import socket
import ssl
import struct
from itertools import count
from typing import Any, cast

from tests.fake_engine import answers
from tests.fake_engine.journal import PROBES, Journal
from tests.fake_engine.wire import Request, read_body, read_head

DISCARD_BYTES = 1 << 20
LINGER_NOT = struct.pack("ii", 1, 0)


class Link(asyncio.StreamReaderProtocol):
    """One connection; `gone` is set as soon as the peer has closed or reset it."""

    def __init__(self, server: "Server", number: int) -> None:
        self.reader = asyncio.StreamReader()
        super().__init__(self.reader, self._serve)
        self.gone = asyncio.Event()
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._server = server

    def eof_received(self) -> bool | None:
        self.gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        super().connection_lost(exc)

    async def _serve(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.task = asyncio.current_task()
        await self._server.serve(self)

    def reset(self) -> None:
        """End the connection with RST, unless it has ended by itself."""
        plain = cast(socket.socket, self.writer.get_extra_info("socket"))
        if plain.fileno() < 0:
            return
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.writer.transport.abort()


class Server:
    """Listens, when told to, always on the same port."""

    def __init__(self, journal: Journal, models: list[str], tls: ssl.SSLContext | None) -> None:
        self.port = 0
        self._journal = journal
        self._models = models
        self._tls = tls
        self._numbers = count(1)
        self._links: set[Link] = set()
        self._listening: asyncio.Server | None = None

    async def listen(self, port: int = 0) -> None:
        """Take connections."""
        if self._listening is None:
            loop = asyncio.get_running_loop()
            self._listening = await loop.create_server(
                lambda: Link(self, next(self._numbers)), "127.0.0.1", port or self.port, ssl=self._tls
            )
            self.port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections from now on."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        await self.drop()

    async def drop(self) -> None:
        """Reset all open connections and wait until nothing of them is left."""
        links = list(self._links)
        for link in links:
            link.reset()
        if tasks := [link.task for link in links if link.task]:
            await asyncio.wait(tasks)

    async def serve(self, link: Link) -> None:
        """One connection, from its first byte to its end."""
        self._links.add(link)
        await self._journal.count("accepted")
        await self._journal.count("open")
        try:
            await self._serve_requests(link)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The peer left in the middle of a request: nothing was asked.
        finally:
            link.writer.close()
            self._links.discard(link)
            await self._journal.count("open", -1)

    async def _serve_requests(self, link: Link) -> None:
        rule = self._journal.rule_at_connect()
        if rule is not None:
            await self._play(link, rule.steps, Request("", "", "", []))
        used = False
        while not link.writer.is_closing():
            request = await read_head(link.reader)
            if request is None:
                return
            if request.path not in PROBES and not used:
                used = True
                await self._journal.count("connections")
            await self._serve_request(link, request)

    async def _serve_request(self, link: Link, request: Request) -> None:
        request.connection = link.number
        rule = self._journal.rule_for(request.path)
        if rule is None or rule.at == "body":
            request.body = await read_body(link.reader, request)
        self._journal.requests.append(request)
        steps = rule.steps if rule is not None else [{"reply": "engine"}]
        if request.path in PROBES:
            await Script(link, request, self._journal, self._models).play(steps)
            return
        await self._journal.count("requests")
        await self._play(link, steps, request)
        if rule is not None and rule.at == "head" and not request.body:
            while await link.reader.read(DISCARD_BYTES):
                pass

    async def _play(self, link: Link, steps: list[dict[str, Any]], request: Request) -> None:
        """Play a script to its end, or until the peer has gone."""
        await self._journal.count("running")
        playing = asyncio.create_task(Script(link, request, self._journal, self._models).play(steps))
        gone = asyncio.create_task(link.gone.wait())
        await asyncio.wait({playing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finished = playing.done() and not isinstance(playing.exception(), ConnectionError)
        for task in (playing, gone):
            task.cancel()
        await asyncio.wait({playing, gone})
        await self._journal.count("running", -1)
        await self._journal.count("answered" if finished else "aborted")
        if finished:
            playing.result()


class Script:
    """Carries out the steps of one script for one request."""

    def __init__(self, link: Link, request: Request, journal: Journal, models: list[str]) -> None:
        self._link = link
        self._request = request
        self._journal = journal
        self._models = models

    async def play(self, steps: list[dict[str, Any]]) -> None:
        """All steps, one after the other."""
        for step in steps:
            await self._step(step)

    async def _step(self, step: dict[str, Any]) -> None:
        match step:
            case {"send": str(text)}:
                await self._send(text.encode(), step)
            case {"send_b64": str(coded)}:
                await self._send(base64.b64decode(coded), step)
            case {"reply": str(name)}:
                await self._send(answers.reply(name, self._request, self._models), step)
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"gate": str(name)}:
                await self._journal.gates[name].acquire()
            case {"read_body": True}:
                self._request.body = await read_body(self._link.reader, self._request)
            case {"hang": True}:
                await asyncio.Event().wait()
            case {"close": True}:
                self._link.writer.close()
            case {"reset": True}:
                await self._link.writer.drain()
                self._link.reset()
            case _:
                raise ValueError(f"no such step: {step}")

    async def _send(self, data: bytes, step: dict[str, Any]) -> None:
        data *= step.get("repeat") or 1
        size = step.get("split") or len(data) or 1
        for start in range(0, len(data), size):
            self._link.writer.write(data[start : start + size])
            await self._link.writer.drain()
            await asyncio.sleep(step.get("pace") or 0)
