"""A fake engine in a test's hands: the process, and its control port as methods."""

import asyncio
import base64
import json
import ssl
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from tests.fake_engine.journal import PROBES
from tests.running import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as the engine saw it; header names are as they came, `connection` numbers its socket."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int

    def header(self, name: str) -> str | None:
        """The header's value, its name in any case, several joined by commas; None if it was not sent."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(found) if found else None

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Process:
    """The operating system's side of a fake engine; not tied to an event loop."""

    def __init__(self, models: Iterable[str] = ("fake-model",), certificate: Path | None = None) -> None:
        self.scheme = "https" if certificate else "http"
        self.port = 0
        self.control = 0
        self._options = [option for name in models for option in ("--model", name)]
        if certificate:
            self._options += ["--certificate", str(certificate)]
        self._child: subprocess.Popen[str] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start it and wait until both ports are open; again on the same port, if it ran before."""
        command = [sys.executable, "-m", "tests.fake_engine", "--until-eof", *self._options]
        self._child = subprocess.Popen(
            [*command, "--port", str(self.port)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"the fake engine ended with {self._child.wait()}"
        ports = json.loads(line)
        self.port, self.control = ports["port"], ports["control"]

    def kill(self) -> None:
        """SIGKILL: nothing is said to anyone."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()


class FakeEngine:
    """`async with FakeEngine() as engine`: a process of its own, or the control of one that runs already."""

    def __init__(
        self,
        *,
        models: Iterable[str] = ("fake-model",),
        certificate: Path | None = None,
        process: Process | None = None,
    ) -> None:
        self._owned = process is None
        self.process = process or Process(models, certificate)

    async def __aenter__(self) -> Self:
        if self._owned:
            await self.start()
        # An empty trust store: the control port speaks plain HTTP, and loading the usual one takes longer.
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._http = httpx.AsyncClient(trust_env=False, timeout=3 * PATIENCE_SECONDS, verify=trusted)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()
        if self._owned:
            self.process.kill()

    @property
    def url(self) -> str:
        """The base URL of the engine, without /v1."""
        return f"{self.process.scheme}://127.0.0.1:{self.process.port}"

    async def script(
        self,
        steps: Sequence[dict[str, Any]],
        *,
        path: str | None = None,
        times: int | None = None,
        at: Literal["body", "head", "connect"] = "body",
    ) -> None:
        """Play these steps to requests of this path, so many times; the first script that fits is taken."""
        await self._post("/_script", {"steps": list(steps), "path": path, "times": times, "at": at})

    async def requests(self, path: str | None = None) -> list[Seen]:
        """What was asked, in order: of one path, or all but the probes."""
        found = (await self._http.get(self._control("/_requests"))).json()
        seen = [
            Seen(
                request["method"],
                request["target"],
                tuple((name, value) for name, value in request["headers"]),
                base64.b64decode(request["body_b64"]),
                request["connection"],
            )
            for request in found
        ]
        if path is None:
            return [request for request in seen if request.target not in PROBES]
        return [request for request in seen if request.target == path]

    async def stats(self) -> dict[str, int]:
        """The counters."""
        counters: dict[str, int] = (await self._http.get(self._control("/_stats"))).json()
        return counters

    async def wait(self, *, timeout_seconds: float = PATIENCE_SECONDS, **counts: int) -> dict[str, int]:
        """Wait until the counters are reached; fails if they are not in time, which is never a short one."""
        patience_seconds = max(timeout_seconds, PATIENCE_SECONDS)
        reached, counters = await self.reaches(patience_seconds, **counts)
        assert reached, f"waited {patience_seconds} s for {counts}, but there are {counters}"
        return counters

    async def reaches(self, seconds: float, **counts: int) -> tuple[bool, dict[str, int]]:
        """Whether the counters are reached within so many seconds, and what they are then."""
        query = {**{name: str(count) for name, count in counts.items()}, "timeout": str(seconds)}
        answer = await self._http.get(self._control("/_wait"), params=query)
        return answer.status_code == 200, answer.json()

    async def open_gate(self, name: str, times: int = 1) -> None:
        """Let so many pass that wait, or will wait, at the gate."""
        await self._post("/_open", {"gate": name, "times": times})

    async def listen(self, on: bool = True) -> None:
        """Refuse connections and reset open ones, or take connections again."""
        await self._post("/_listen", {"on": on})

    async def reset(self) -> None:
        """As fresh from the start."""
        await self._post("/_reset", None)

    async def start(self) -> None:
        """Start the process; after `kill`, on the same port."""
        await asyncio.to_thread(self.process.start)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    async def _post(self, path: str, document: object) -> None:
        answer = await self._http.post(self._control(path), json=document)
        assert answer.status_code == 200, answer.text

    def _control(self, path: str) -> str:
        return f"http://127.0.0.1:{self.process.control}{path}"
