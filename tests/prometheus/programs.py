"""The programs of Prometheus for tests, out of Debian's packages, and how one of them is run beside a test.

They are unpacked into the user's cache: nothing is installed, and no service is started. Alertmanager of
bookworm (0.25) cannot read a webhook's address from a file, so they are trixie's; they run on bookworm too.
"""

import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from deploy.local.places import CHECKOUT
from tests.running import http_client, wait_for
from tests.stack.debian import codename, unpacked

CONFIGURATION = CHECKOUT / "deploy" / "prometheus"
RULES = CONFIGURATION / "rules"
SUITE = "trixie"
PACKAGES = (
    "prometheus",
    "promtool",
    "prometheus-alertmanager",
    "prometheus-blackbox-exporter",
    "prometheus-node-exporter",
)
SECONDS = 120
START_SECONDS = 120.0


class Unavailable(Exception):
    """The programs cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Programs:
    """Where the programs lie."""

    folder: Path

    def path(self, name: str) -> str:
        """The program of that name, as Debian calls it."""
        return str(self.folder / name)

    @property
    def templates(self) -> Path:
        """Where Alertmanager must be started, to find the templates it comes with."""
        return self.folder.parent / "share" / "prometheus" / "alertmanager"

    def run(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it to its end; what it says is in `stdout`, errors included."""
        return subprocess.run(
            [self.path(name), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def find() -> Programs:
    """All of them, downloaded once for each user. Raises Unavailable, or AptFailure where that fails."""
    if not codename():
        raise Unavailable("they come from Debian's packages, and this is no Debian")
    return Programs(unpacked("prometheus", SUITE, PACKAGES, _relocate) / "usr" / "bin")


def _relocate(root: Path) -> None:
    """Let Debian's Alertmanager find its templates, which the official one holds in itself.

    Debian's looks for them in a folder of the system, where only root may put them. In its stead the program
    gets a name of the same length for the folder in which it was started.
    """
    program = root / "usr" / "bin" / "prometheus-alertmanager"
    theirs = b"/usr/share/prometheus/alertmanager"
    program.write_bytes(program.read_bytes().replace(theirs, b"/proc/self/cwd".ljust(len(theirs), b"/")))


@contextlib.asynccontextmanager
async def serving(
    command: Sequence[str], ready: str, log: Path, folder: Path | None = None, **environ: str
) -> AsyncIterator[None]:
    """A program that runs until the block ends, entered once the address `ready` answers 200."""
    process = _started(command, log, folder, environ)

    async def answers() -> bool:
        assert process.poll() is None, _said(log)
        async with http_client() as client:
            try:
                return (await client.get(ready)).status_code == 200
            except httpx.TransportError:
                return False

    try:
        await wait_for(answers, START_SECONDS, lambda: _said(log))
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def _started(
    command: Sequence[str], log: Path, folder: Path | None, environ: dict[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, env={**os.environ, **environ}
        )


def _said(log: Path) -> str:
    return log.read_text(errors="replace")
