"""The stack as an operator runs it: `make up` in a copy of the checkout, and what is seen from outside."""

import json
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from deploy.box import variables
from deploy.box.places import Places
from tests.running import free_port, wait_for
from tests.stack import checkout, commands
from tests.stack.engine import Engine, of_engine

SITE = "localhost"
PROJECT = "vllm-gateway"
UP_SECONDS = 900.0
# What an operator may have set for another stack must not reach this one.
MISLEADING = frozenset({*variables.MEANING, "MODE", "ALERT_URL", "SERVICE", "FILE", "YES", "MODEL", "BACK"})


@dataclass(frozen=True)
class Container:
    """One container as Docker sees it now."""

    service: str
    image: str
    state: str
    health: str
    exit_code: int
    restarts: int
    started: str


class Stack:
    """One stack on an engine. `folder` is its checkout; `log` gathers what containers wrote."""

    def __init__(self, engine: Engine, folder: Path, weights: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.places = Places(folder)
        self.https_port = free_port()
        self.alert_port = free_port()
        self.log = folder.with_name("containers.log")
        self.invitation = ""
        self.keys: list[str] = []
        self._first = {
            "PROFILE": checkout.PROFILE,
            "SITE": SITE,
            "HTTP_PORT": str(free_port()),
            "HTTPS_PORT": str(self.https_port),
            "WEIGHTS_DIR": str(weights),
            "ALERT_URL": f"http://{own_address()}:{self.alert_port}/alerts?token=secret-of-the-webhook",
        }

    @property
    def environ(self) -> Mapping[str, str]:
        """What commands of this stack are run with; .env says the rest."""
        return {name: value for name, value in self.engine.environ.items() if name not in MISLEADING}

    async def make(self, target: str, **given: str) -> str:
        """What `make target` prints, with variables given on its command line. Raises CommandFailed."""
        return await commands.run(
            [sys.executable, "-m", "deploy.box", target],
            environ={**self.environ, **given}, folder=self.folder, seconds=UP_SECONDS,
        )  # fmt: skip

    async def up(self) -> None:
        """`make up` on a machine where nothing is set up yet; what it prints is `invitation`."""
        self.invitation = await self.make("up", **self._first)

    async def compose(self, *arguments: str, seconds: float = 600) -> str:
        """What `docker compose …` prints in the stack's folder. Raises CommandFailed."""
        return await commands.run(
            ["docker", "compose", *arguments], environ=self.environ, folder=self.folder, seconds=seconds
        )

    async def inside(self, service: str, program: str, *arguments: str) -> str:
        """What a Python program prints within a service's container."""
        return (await self.compose("exec", "-T", service, "python3", "-c", program, *arguments)).strip()

    @property
    def variables(self) -> Mapping[str, str]:
        """What .env says."""
        return variables.load(self.places)

    @property
    def url(self) -> str:
        """The address that callers use, without /v1."""
        return f"https://{SITE}:{self.https_port}"

    @property
    def key(self) -> str:
        """The first key."""
        return self.places.first_key.read_text().strip()

    @property
    def trust(self) -> ssl.SSLContext:
        """A context that verifies against the exported authority, and knows no other."""
        return ssl.create_default_context(cafile=str(self.places.ca_certificate))

    def http(self) -> httpx.AsyncClient:
        """A client of Caddy's, certificate verified."""
        return httpx.AsyncClient(base_url=self.url, verify=self.trust, timeout=120, trust_env=False)

    def sdk(self, key: str = "") -> AsyncOpenAI:
        """The OpenAI SDK with base URL, key and CA, and nothing else."""
        client = DefaultAsyncHttpxClient(verify=self.trust)
        return AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key=key or self.key, max_retries=0, http_client=client
        )

    async def create_key(self, name: str, *options: str) -> str:
        """A new key, made by the gateway's command in its container; it works on return."""
        told = await self.compose(
            "exec", "-T", "gateway", "gateway", "keys", "create", "--name", name, "--json", *options
        )
        self.keys.append(json.loads(told)["key"])
        async with self.http() as http:
            await wait_for(lambda: _accepts(http, self.keys[-1]))
        return self.keys[-1]

    async def kill(self, service: str) -> None:
        """Kill a service's first process."""
        await self.engine.kill_container((await self.compose("ps", "-q", service)).strip())

    @property
    def ops(self) -> str:
        """The network of the operator's listeners, as far as the last number."""
        return self.variables["OPS_NET"]

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that Prometheus answers. Fails if the expression is none."""
        answer = await self.prometheus("query", query=expression)
        series: list[dict[str, Any]] = answer["result"]
        return series

    async def prometheus(self, path: str, **parameters: str) -> Any:
        """The data of an answer of Prometheus' API."""
        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            url = f"http://{self.ops}.3:9090/api/v1/{path}"
            answer = await client.get(url, params=parameters)
        assert answer.status_code == 200, f"{parameters}: {answer.text}"
        return answer.json()["data"]

    async def containers(self) -> dict[str, Container]:
        """All containers of the stack by service, stopped ones too."""
        ids = await self.engine.docker("ps", "-aq", "--filter", f"label=com.docker.compose.project={PROJECT}")
        if not ids.split():
            return {}
        told = json.loads(await self.engine.docker("inspect", *ids.split()))
        return {one.service: one for one in sorted(map(_container, told), key=lambda one: one.service)}

    async def healthy(self) -> bool:
        """Whether all of them run and are well."""
        found = await self.containers()
        return bool(found) and all(
            one.state == "running" and one.health == "healthy" for one in found.values()
        )

    async def keep_logs(self) -> None:
        """Append what the containers have written so far: what is removed takes its log with it."""
        with self.log.open("a") as log:
            log.write(await self.compose("--profile", "*", "logs", "--no-color", "--timestamps"))


async def _accepts(http: httpx.AsyncClient, key: str) -> bool:
    answer = await http.get("/v1/models", headers={"authorization": f"Bearer {key}"})
    return answer.status_code == 200


def own_address() -> str:
    """This machine's own: the one that a packet to elsewhere would carry.

    None is sent, and that address is nobody's (RFC 5737).
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.200", 9))
        return str(probe.getsockname()[0])


async def listening() -> set[int]:
    """The TCP ports on which this machine can be called from others, opened by Docker or by containers."""
    lines = (await commands.run(["ss", "-Hltnp"])).splitlines()
    ours = [line for line in lines if any(map(of_engine, re.findall(r"pid=(\d+)", line)))]
    addresses = [line.split()[3].rpartition(":") for line in ours]
    return {int(port) for host, _, port in addresses if not _loopback(host)}


def _loopback(host: str) -> bool:
    bare = host.strip("[]").partition("%")[0]
    return bare != "*" and ip_address(bare).is_loopback


def _container(told: Mapping[str, Any]) -> Container:
    state = told["State"]
    return Container(
        service=told["Config"]["Labels"]["com.docker.compose.service"],
        image=told["Config"]["Image"],
        state=state["Status"],
        health=state.get("Health", {}).get("Status", ""),
        exit_code=state["ExitCode"],
        restarts=told["RestartCount"],
        started=state["StartedAt"],
    )
