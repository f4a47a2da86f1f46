"""Receives alerts as an operator's webhook would."""

import asyncio
import json
from types import TracebackType
from typing import Any, Self


class Webhook:
    """`async with Webhook(host, port) as webhook`: what was posted there is in `alerts`, oldest first."""

    def __init__(self, host: str, port: int) -> None:
        self.alerts: list[dict[str, Any]] = []
        self._host, self._port = host, port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    def firing(self, name: str) -> bool:
        """Whether an alert of that name came."""
        return any(one["status"] == "firing" and one["labels"]["alertname"] == name for one in self.alerts)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].split()[0])
        self.alerts += json.loads(await reader.readexactly(length))["alerts"]
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
