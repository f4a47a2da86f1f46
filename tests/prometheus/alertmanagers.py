"""A real Alertmanager with the configuration that an ALERT_URL gives, and real amtool for it."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from deploy.alertmanager.configuration import address, render
from deploy.alertmanager.receivers import Smtp
from tests.prometheus.programs import Programs, serving
from tests.running import free_port


@dataclass(frozen=True)
class Alertmanager:
    """One that runs."""

    programs: Programs
    port: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def execute(self, argv: Sequence[str]) -> str:
        """Run a command as in its container, where amtool and wget are."""
        if argv[0] == "wget":
            return httpx.get(argv[-1], timeout=60, trust_env=False).text
        command = [self.programs.path(argv[0]), *argv[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def fire(self, name: str, **labels: str) -> None:
        """An alert as Prometheus would send it."""
        said = ["--annotation=summary=It happens.", f"--annotation=runbook_url=https://example.org/{name}.md"]
        pairs = [f"alertname={name}", *(f"{label}={value}" for label, value in labels.items())]
        command = ["amtool", f"--alertmanager.url={self.url}", "alert", "add", *pairs, *said]
        await asyncio.to_thread(self.execute, command)


def written(folder: Path, alert_url: str, smtp: Smtp | None = None, password: str = "") -> Path:
    """The files that `make up` writes for an ALERT_URL; answers that of the configuration."""
    (folder / "alert-url").write_text(address(alert_url))
    (folder / "smtp-password").write_text(password)
    file = folder / "alertmanager.yml"
    file.write_text(render(alert_url, smtp, secrets=str(folder)))
    return file


@contextlib.asynccontextmanager
async def alertmanager(
    programs: Programs, folder: Path, configuration: Path, **environ: str
) -> AsyncIterator[Alertmanager]:
    """Start it with that configuration; stop it at the block's end."""
    running = Alertmanager(programs, free_port())
    command = [
        programs.path("prometheus-alertmanager"),
        f"--config.file={configuration}",
        f"--storage.path={folder / 'state'}",
        f"--web.listen-address=127.0.0.1:{running.port}",
        "--cluster.listen-address=",
    ]
    log = folder / "alertmanager.log"
    async with serving(command, f"{running.url}/-/ready", log, programs.templates, **environ):
        yield running
