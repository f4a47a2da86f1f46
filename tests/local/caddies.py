"""A real Caddy with the Caddyfile of the local mode, on free ports and with a folder of its own."""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Self

import httpx

from deploy.local import authority, services
from deploy.local.places import Places
from deploy.local.ports import Ports
from tests.running import free_port

START_SECONDS = 120.0
CADDYFILE = Places().caddyfile


def command(verb: str) -> list[str]:
    """Arguments of a Caddy command on the Caddyfile."""
    return [str(Places().programs / "caddy"), verb, "--config", str(CADDYFILE), "--adapter", "caddyfile"]


class Caddy:
    """`async with Caddy(folder) as caddy`: started; `client()` verifies its certificate, by HTTP/1.1 or 2."""

    def __init__(self, folder: Path) -> None:
        self.places = Places(folder)
        self.ports = Ports(https=free_port(), gateway=free_port())
        self.url = f"https://localhost:{self.ports.https}"
        self.log = folder / "caddy.log"

    @property
    def environ(self) -> dict[str, str]:
        """What the Caddyfile is given, as `make up` gives it."""
        return {**os.environ, **services.caddy_settings(self.places, self.ports)}

    @property
    def trust(self) -> ssl.SSLContext:
        """A context that verifies against the exported bundle."""
        return ssl.create_default_context(cafile=str(self.places.ca_bundle))

    def client(self, http2: bool = False) -> httpx.AsyncClient:
        """An HTTP client that trusts this Caddy's authority, without the machine's proxies."""
        return httpx.AsyncClient(
            base_url=self.url, verify=self.trust, http1=not http2, http2=http2, timeout=60, trust_env=False
        )

    async def __aenter__(self) -> Self:
        self.places.data.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command("run"), env=self.environ, stdout=log, stderr=log
            )
        async with asyncio.timeout(START_SECONDS):
            while not await self._answers():
                assert self._process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.05)
        return self

    async def _answers(self) -> bool:
        try:
            authority.export(self.places, authority.system_roots())
            async with self.client() as client:
                await client.get("/", headers={"host": "elsewhere.example"})
        except (FileNotFoundError, httpx.TransportError):
            return False
        return True

    async def __aexit__(self, *_: object) -> None:
        self._process.terminate()
        await self._process.wait()
