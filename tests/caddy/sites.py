"""A real Caddy, started by deploy/caddy/start.sh for a SITE, on free ports and with a folder of its own."""

import asyncio
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Self

import certifi
import httpx

from tests.running import free_port, wait_for

ROOT = Path(__file__).parent.parent.parent
CADDYFILE = ROOT / "Caddyfile"
START = ["/bin/sh", str(ROOT / "deploy" / "caddy" / "start.sh")]
START_SECONDS = 120.0


def environ(folder: Path, site: str, **others: str) -> dict[str, str]:
    """The environment that the container has, with folders and files of this machine."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "CADDYFILE": str(CADDYFILE),
        "SYSTEM_ROOTS": certifi.where(),
        "SITE": site,
        **others,
    }


def start(folder: Path, site: str, verb: str, **others: str) -> subprocess.CompletedProcess[str]:
    """What the start script says of a SITE when Caddy is to `adapt` or `validate` it."""
    return subprocess.run(
        [*START, verb], env=environ(folder, site, **others), capture_output=True, text=True, check=False
    )


class Site:
    """`async with Site(folder) as site`: started; `client()` verifies its certificate, by HTTP/1.1 or 2.

    `url` is for TLS, `plain_url` for http, `metrics_url` Prometheus'. Nobody listens on the ports `gateway`
    and `grafana` unless the test does.
    """

    def __init__(self, folder: Path, site: str = "localhost 127.0.0.1", gateway: int = 0) -> None:
        self.https, self.http, self.metrics = free_port(), free_port(), free_port()
        self.gateway, self.grafana = gateway or free_port(), free_port()
        self.url = f"https://localhost:{self.https}"
        self.plain_url = f"http://localhost:{self.http}"
        self.metrics_url = f"http://127.0.0.1:{self.metrics}/metrics"
        self.root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        self.log = folder / "caddy.log"
        self._environ = environ(
            folder,
            site,
            HTTPS_PORT=str(self.https),
            LISTEN_HTTPS=str(self.https),
            LISTEN_HTTP=str(self.http),
            LISTEN_METRICS=str(self.metrics),
            GATEWAY_UPSTREAM=f"127.0.0.1:{self.gateway}",
            GRAFANA_UPSTREAM=f"127.0.0.1:{self.grafana}",
        )

    @property
    def trust(self) -> ssl.SSLContext:
        """A context that trusts this site's authority alone."""
        return ssl.create_default_context(cafile=str(self.root))

    def client(self, http2: bool = False) -> httpx.AsyncClient:
        """An HTTP client that trusts this authority and follows nothing, without the machine's proxies."""
        return httpx.AsyncClient(
            base_url=self.url, verify=self.trust, http1=not http2, http2=http2, timeout=60, trust_env=False
        )

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *START, env=self._environ, stdout=log, stderr=log
            )
        await wait_for(self._answers, START_SECONDS, self.log.read_text)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        await self._process.wait()

    async def _answers(self) -> bool:
        assert self._process.returncode is None, self.log.read_text()
        try:
            async with self.client() as client:
                return (await client.get("/ca.crt")).status_code == 200
        except (FileNotFoundError, httpx.TransportError):
            return False
