"""The control port: where tests say what the engine shall do and ask what it has seen.

POST /_script    {"steps": […], "path": null, "times": null, "at": "body"}, or the bare list of steps
POST /_reset     forget everything, drop all connections, listen again
POST /_open      {"gate": "name", "times": 1}
POST /_listen    {"on": false}
GET  /_requests  what was asked, in order, the probes' requests too
GET  /_stats     the counters
GET  /_wait?aborted=1&timeout=5   the counters, once they are reached; 408 if not in time
"""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fake_engine import answers
from tests.fake_engine.journal import Journal, Rule
from tests.fake_engine.server import Server
from tests.fake_engine.wire import read_body, read_head


class Control:
    """Answers the control port of one fake engine."""

    def __init__(self, journal: Journal, server: Server) -> None:
        self._journal = journal
        self._server = server

    async def listen(self) -> int:
        """Take control connections; the port."""
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = listening.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_head(reader):
                body = await read_body(reader, request)
                status, document = await self._answer(request.target, json.loads(body) if body else None)
                writer.write(answers.whole(json.dumps(document).encode(), status=status))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The test ended.
        finally:
            writer.close()

    async def _answer(self, target: str, body: Any) -> tuple[int, object]:
        parts = urlsplit(target)
        match parts.path:
            case "/_script":
                rule = Rule(**body) if isinstance(body, dict) else Rule(body)
                self._journal.rules.append(rule)
            case "/_reset":
                self._journal.reset()
                await self._server.drop()
                self._journal.reset()
                await self._server.listen()
            case "/_open":
                for _ in range(body.get("times", 1)):
                    self._journal.gates[body["gate"]].release()
            case "/_listen":
                await (self._server.listen() if body["on"] else self._server.stop())
            case "/_requests":
                return 200, [request.as_json() for request in self._journal.requests]
            case "/_wait":
                return await self._wait(dict(parse_qsl(parts.query)))
            case "/_stats":
                pass
            case _:
                return 404, {"error": f"no such control: {parts.path}"}
        return 200, self._journal.counts

    async def _wait(self, query: dict[str, str]) -> tuple[int, object]:
        timeout = float(query.pop("timeout", "5"))
        wanted = {name: int(value) for name, value in query.items()}
        reached = await self._journal.wait(wanted, timeout)
        return 200 if reached else 408, self._journal.counts
