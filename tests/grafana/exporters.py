"""Exporters that this machine lacks: their expositions as files, served over HTTP, counters moving."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

FOLDER = Path(__file__).parent / "expositions"
NAMES = ("vllm", "node", "dcgm", "blackbox")
GROWTH = 0.0001  # of a counter with each scrape; what grew together goes on together, so ratios stay


def exposition(name: str) -> str:
    """The file, as it was scraped."""
    return (FOLDER / f"{name}.txt").read_text()


def series(text: str) -> set[str]:
    """The names of all series of an exposition, those of buckets and sums included."""
    return set(re.findall(r"^([a-zA-Z_:][\w:]*)[{ ]", text, re.MULTILINE))


def moved(text: str, scrapes: int) -> str:
    """The exposition after so many scrapes: what only ever grows has grown."""
    return "\n".join(lines(text, 1 + GROWTH * scrapes)) + "\n"


def lines(text: str, factor: float) -> Iterator[str]:
    """Line by line, the samples of counters and histograms multiplied."""
    grows = False
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            grows = line.endswith((" counter", " histogram"))
        name, _, value = line.rpartition(" ")
        yield f"{name} {float(value) * factor!r}" if grows and not line.startswith("#") else line


class Exporters:
    """`async with Exporters() as exporters`: all of them at one `address`, each under `/NAME`."""

    def __init__(self) -> None:
        self._scrapes = dict.fromkeys(NAMES, 0)
        self.address = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{name}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self._scrapes[name] += 1
        return web.Response(text=moved(exposition(name), self._scrapes[name]))
