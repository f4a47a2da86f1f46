"""A real llama.cpp server in a process of its own, installed if it was not."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deploy.local import llamacpp, models
from deploy.local.problem import Problem
from tests.openai_engine.calls import MODEL
from tests.running import free_port, wait_for

START_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Llama:
    """A running server."""

    url: str
    port: int
    process: subprocess.Popen[bytes]

    async def well(self) -> bool:
        """Whether it is loaded. Fails if the process is gone."""
        assert self.process.poll() is None, "llama.cpp ended while starting"
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            try:
                return (await client.get(f"{self.url}/health")).status_code == 200
            except httpx.TransportError:
                return False


def installed() -> Path:
    """The server's folder. Skips where it cannot be had."""
    try:
        models.smollm2_gguf()
        return llamacpp.install()
    except Problem as problem:
        pytest.skip(f"no llama.cpp here: {problem}")


@asynccontextmanager
async def running(folder: Path, log: Path) -> AsyncIterator[Llama]:
    """One, once it answers; killed afterwards."""
    model = models.smollm2_gguf()
    assert model.id == MODEL
    port = free_port()
    argv, environ = llamacpp.command(folder, model, port)
    llama = Llama(f"http://127.0.0.1:{port}", port, _start(argv, environ, log))
    try:
        await wait_for(llama.well, START_SECONDS, lambda: log.read_text(errors="replace")[-3000:])
        yield llama
    finally:
        llama.process.kill()
        llama.process.wait()


def _start(argv: list[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
