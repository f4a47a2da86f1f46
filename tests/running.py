"""A real gateway in a process of its own, on free ports, as an operator would start it."""

import asyncio
import itertools
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

ADMIN_TOKEN = "admin-token-of-the-tests"
# A deadline only bounds a failure: a machine that stands still for half a minute must not look like one.
PATIENCE_SECONDS = 60.0
START_SECONDS = 120.0
TIMEOUT = httpx.Timeout(PATIENCE_SECONDS)
# Loading the usual trust store takes longer than a call, and nothing here speaks TLS.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# Below those that a system gives away by itself, which could take one before its server does.
PORTS = range(10_000, 16_000)


def http_client() -> httpx.AsyncClient:
    """A client for plain HTTP that looks at nothing around it."""
    return httpx.AsyncClient(timeout=TIMEOUT, trust_env=False, verify=NO_TLS)


def free_port() -> int:
    """A port that nobody listens on now, and that nobody else is given."""
    return next(_free_ports)


def _look_for_ports() -> Iterator[int]:
    # Another run of the tests on this machine begins elsewhere.
    begin = os.getpid() * 61 % len(PORTS)
    for number in itertools.count(begin):
        port = PORTS[number % len(PORTS)]
        if _is_free(port):
            yield port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


_free_ports = _look_for_ports()


class Gateway:
    """`async with Gateway(folder, config=…) as gateway`: started, ready to be called, ended afterwards.

    `url` is the public base without /v1, `ops` the ops port's; `key` a key without limits.
    """

    def __init__(
        self, folder: Path, *, config: str = "", python: str = sys.executable, **environ: str
    ) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.ops = f"http://127.0.0.1:{free_port()}"
        self.data_dir = folder / "data"
        self.log_file = folder / "gateway.log"
        self.config_file = folder / "gateway.toml"
        self._python = python
        self._config = config
        self._environ = environ
        self.key = ""

    @property
    def environ(self) -> dict[str, str]:
        """The environment that the process runs in: the machine's, without settings of its own."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        return own | {
            "GATEWAY_PORT": self.url.rpartition(":")[2],
            "GATEWAY_OPS_PORT": self.ops.rpartition(":")[2],
            "GATEWAY_DATA_DIR": str(self.data_dir),
            "GATEWAY_ADMIN_TOKEN": ADMIN_TOKEN,
            "GATEWAY_LOG_FORMAT": "json",
            # The usual five seconds may pass while the machine stands still.
            "GATEWAY_ENGINE__CONNECT_TIMEOUT_SECONDS": "60",
            **({"GATEWAY_CONFIG": str(self.config_file)} if self._config else {}),
            **self._environ,
        }

    async def __aenter__(self) -> Self:
        try:
            await self.start()
            self.key = (await self.create_key(name="tests"))["key"]
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def start(self) -> None:
        """Start the process and wait until it answers."""
        await self._spawn()
        await wait_for(self._answers, START_SECONDS, self.log)

    async def run_to_end(self) -> int:
        """Start a process that will end by itself; its exit code. What it wrote is in `log`."""
        await self._spawn()
        try:
            return await asyncio.wait_for(self.process.wait(), START_SECONDS)
        finally:
            await self._end()

    async def stop(self, signum: int = signal.SIGTERM) -> int:
        """Send the signal and wait for the exit code."""
        self.process.send_signal(signum)
        return await self.process.wait()

    async def admin(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """One call of the admin API."""
        headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        async with http_client() as client:
            return await client.request(method, self.ops + path, headers=headers, **arguments)

    async def create_key(self, **fields: Any) -> dict[str, Any]:
        """A new key: its `id` and the `key` itself. It works on return."""
        answer = await self.admin("POST", "/admin/keys", json=fields)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        await wait_for(lambda: self._accepts(made["key"]), evidence=self.log)
        return made

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series that carry these labels; 0.0 if there is none."""
        async with http_client() as client:
            return sample((await client.get(self.ops + "/metrics")).text, name, **labels)

    def log(self) -> str:
        """All lines that the process has written."""
        return whole_lines(self.log_file)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        lines = (json.loads(line) for line in self.log().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == name]

    async def request_line(self, request_id: str) -> dict[str, Any]:
        """The log line of one request, which is written when its answer is out."""

        async def lines() -> list[dict[str, Any]]:
            return [line for line in self.events("request") if line["request_id"] == request_id]

        await wait_for(lines, evidence=self.log)
        [line] = await lines()
        return line

    async def _spawn(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._config:
            self.config_file.write_text(self._config)
        with self.log_file.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                self._python, "-m", "gateway", "serve", env=self.environ, cwd=self._cwd(),
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    async def _end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    def _cwd(self) -> Path:
        return Path(__file__).parent.parent

    async def _answers(self) -> bool:
        assert self.process.returncode is None, f"the gateway ended at once:\n{self.log()}"
        async with http_client() as client:
            try:
                ready = (await client.get(self.ops + "/readyz")).text
                # On a slow machine it serves before it has had the time to look at its engines.
                return (
                    "not probed yet" not in ready
                    and (await client.get(self.url + "/healthz")).status_code == 200
                )
            except httpx.TransportError:
                return False

    async def _accepts(self, key: str) -> bool:
        async with http_client() as client:
            answer = await client.get(f"{self.url}/v1/models", headers={"x-api-key": key})
            return answer.status_code != 401


def whole_lines(file: Path) -> str:
    """A log that is being written: its last line may be there by half, and is left out then."""
    written = file.read_bytes()
    return written[: written.rfind(b"\n") + 1].decode(errors="replace")


async def wait_for(
    condition: Any,
    seconds: float = PATIENCE_SECONDS,
    evidence: Any = lambda: "",
    *,
    pause_seconds: float = 0.02,
) -> None:
    """Wait until an asynchronous condition holds; fails with the evidence after so many seconds or more.

    Never before `PATIENCE_SECONDS`: that something comes at once is proven by what it came before.
    """
    loop = asyncio.get_running_loop()
    patience_seconds = max(seconds, PATIENCE_SECONDS)
    deadline = loop.time() + patience_seconds
    while not await condition():
        assert loop.time() < deadline, f"not within {patience_seconds} s\n{evidence()}"
        await asyncio.sleep(pause_seconds)


def least(measure: Callable[[], float], enough: float) -> float:
    """The least of up to five measurements, the last of which is the first below `enough`.

    A busy machine makes some of them larger, a fault all.
    """
    found = measure()
    for _ in range(4):
        if found < enough:
            break
        found = min(found, measure())
    return found


def sample(text: str, name: str, **labels: str) -> float:
    """The sum of the series of a metric, in Prometheus' text format, that carry these labels."""
    total = 0.0
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name and all(
            f'{key}="{wanted}"' in series for key, wanted in labels.items()
        ):
            total += float(value)
    return total
