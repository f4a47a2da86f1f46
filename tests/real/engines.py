"""Real vLLM engines for the tests: one process per model and run, started when first asked for."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deploy.local import engine, models
from deploy.local.engine import ServedModel
from deploy.local.problem import Problem
from tests.running import free_port, sample, wait_for

START_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class RealEngine:
    """A running vLLM. `model` is the id that it serves."""

    url: str
    model: str
    process: subprocess.Popen[bytes]

    async def metric(self, name: str) -> float:
        """The sum of one of its own metrics."""
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            return sample((await client.get(f"{self.url}/metrics")).text, name)

    async def running(self) -> float:
        """How many requests it is generating for."""
        return await self.metric("vllm:num_requests_running")

    async def healthy(self) -> bool:
        """Whether its model is loaded. Fails the test if the process is gone."""
        assert self.process.poll() is None, "the engine ended while starting"
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            try:
                return (await client.get(f"{self.url}/health")).status_code == 200
            except httpx.TransportError:
                return False


def prepare() -> tuple[ServedModel, ServedModel]:
    """The two models of the tests, engine and weights installed. Skips where this machine cannot run them."""
    try:
        engine.install()
        return models.smollm2(), models.tiny_qwen3()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")


def start(model: ServedModel, log: Path) -> RealEngine:
    """The engine's process; it answers once `healthy`."""
    port = free_port()
    argv, environ = engine.command(model, port)
    # vLLM's own keep-alive of 5 s, not the 120 s of the local mode: the hard case for kept connections.
    environ.pop("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    return RealEngine(f"http://127.0.0.1:{port}", model.id, process)


async def ready(engines: tuple[RealEngine, ...], logs: Path) -> None:
    """Wait until all of them answer."""

    def evidence() -> str:
        return "\n".join(log.read_text(errors="replace")[-3000:] for log in logs.glob("*.log"))

    await asyncio.gather(*(wait_for(engine.healthy, START_SECONDS, evidence) for engine in engines))
