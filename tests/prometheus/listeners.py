"""What stands at the other end of an alert: an HTTP server that keeps what is posted, and a mail server."""

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sized
from dataclasses import dataclass, field
from typing import Any

from tests.running import wait_for


@dataclass
class Inbox:
    """What has come in, oldest first: for HTTP the request's target, headers and body; for mail its lines."""

    port: int = 0
    posts: list[tuple[str, str, Any]] = field(default_factory=list)
    mails: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    status: str = "200 OK"

    async def posted(self, count: int = 1) -> list[tuple[str, str, Any]]:
        """Wait until so many requests have come."""
        await _until(self.posts, count)
        return self.posts

    async def mailed(self, count: int = 1) -> list[str]:
        """Wait until so many mails have come."""
        await _until(self.mails, count)
        return self.mails


async def _until(came: Sized, count: int) -> None:
    async def enough() -> bool:
        return len(came) >= count

    await wait_for(enough)


@contextlib.asynccontextmanager
async def webhook() -> AsyncIterator[Inbox]:
    """A server that takes any POST of JSON, and answers with the inbox's status."""
    inbox = Inbox()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length:")[2].split()[0])
            inbox.posts.append((head.split(" ")[1], head, json.loads(await reader.readexactly(length))))
            writer.write(f"HTTP/1.1 {inbox.status}\r\ncontent-length: 2\r\n\r\nok".encode())
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        inbox.port = server.sockets[0].getsockname()[1]
        yield inbox


@contextlib.asynccontextmanager
async def mail_server(context: ssl.SSLContext) -> AsyncIterator[Inbox]:
    """A server that insists on STARTTLS and then takes mail from whoever logs in."""
    inbox = Inbox()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await _dialogue(inbox, reader, writer, context)
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        inbox.port = server.sockets[0].getsockname()[1]
        yield inbox


async def _dialogue(
    inbox: Inbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
) -> None:
    """RFC 5321, as far as Alertmanager goes."""
    secure = False
    writer.write(b"220 mail\r\n")
    while line := (await reader.readline()).decode().strip():
        verb, _, rest = line.partition(" ")
        answer = "250 ok"
        match verb.upper():
            case "EHLO":
                answer = "250-mail\r\n250 AUTH PLAIN" if secure else "250-mail\r\n250 STARTTLS"
            case "STARTTLS":
                writer.write(b"220 go\r\n")
                await writer.start_tls(context)
                secure, answer = True, ""
            case "AUTH":
                inbox.logins.append(base64.b64decode(rest.split(" ")[1]).decode())
                answer = "235 in"
            case "DATA":
                writer.write(b"354 go\r\n")
                inbox.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
            case "QUIT":
                writer.write(b"221 bye\r\n")
                return
        if answer:
            writer.write(f"{answer}\r\n".encode())
        await writer.drain()
