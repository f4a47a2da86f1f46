"""Real vLLM engines for the tests: one process per model and run, started when first asked for."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deploy.local import engine, models
from deploy.local.engine import ServedModel
from deploy.local.problem import Problem
from tests.running import PATIENCE_SECONDS, free_port, http_client, sample, wait_for

START_SECONDS = 600.0
# A random model would write blanks without end wherever a grammar allows any.
TERSE = ("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}')
# Its metrics are written by the process that also streams: to ask all the time would be a load of its own.
ASK_SECONDS = 0.2
# Of a call that its caller leaves: what takes the engine a minute or so.
LONG_TOKENS = 1500
IDLE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class RealEngine:
    """A running vLLM. `model` is the id that it serves."""

    url: str
    model: str
    process: subprocess.Popen[bytes]
    http: httpx.AsyncClient

    async def metric(self, name: str) -> float:
        """The sum of one of its own metrics, which is never asked for more often than each `ASK_SECONDS`."""
        await asyncio.sleep(ASK_SECONDS)
        return sample((await self.http.get(f"{self.url}/metrics")).text, name)

    async def running(self) -> float:
        """How many requests it is generating for."""
        return await self.metric("vllm:num_requests_running")

    async def busy(self) -> bool:
        """Whether it is generating for anybody."""
        return await self.running() > 0

    async def idle(self) -> bool:
        """Whether it is generating for nobody."""
        return await self.running() == 0

    @asynccontextmanager
    async def stops_early(self) -> AsyncIterator[None]:
        """Proves that it stops working on a call of `LONG_TOKENS` tokens that is begun and left within.

        By its own count of tokens: how long that takes says more of the machine than of the gateway.
        """
        await wait_for(self.idle, IDLE_SECONDS)
        before = await self.metric("vllm:generation_tokens_total")
        yield
        await wait_for(self.idle, IDLE_SECONDS)
        generated = await self.metric("vllm:generation_tokens_total") - before
        assert generated < LONG_TOKENS / 2, f"{generated} tokens for a caller who had left"

    async def healthy(self) -> bool:
        """Whether its model is loaded. Fails the test if the process is gone."""
        assert self.process.poll() is None, "the engine ended while starting"
        await asyncio.sleep(ASK_SECONDS)
        try:
            return (await self.http.get(f"{self.url}/health")).status_code == 200
        except httpx.TransportError:
            return False


def prepare() -> tuple[ServedModel, ServedModel]:
    """The two models of the tests, engine and weights installed. Skips where this machine cannot run them."""
    try:
        engine.install()
        return models.smollm2(), models.tiny_qwen3()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")


def start(model: ServedModel, log: Path, extra: Sequence[str] = ()) -> RealEngine:
    """The engine's process; it answers once `healthy`. `extra` are further vLLM flags."""
    port = free_port()
    argv, environ = engine.command(model, port, (*TERSE, *extra))
    # vLLM's own keep-alive of 5 s, not the 120 s of the local mode: the hard case for kept connections.
    environ.pop("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    http = http_client()
    # A connection of its own for each question: the engine closes idle ones just when it likes to.
    http.headers["connection"] = "close"
    return RealEngine(f"http://127.0.0.1:{port}", model.id, process, http)


async def stop(engines: tuple[RealEngine, ...]) -> None:
    """End them all, with what they have started."""
    for one in engines:
        await one.http.aclose()
        with suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGTERM)
    for one in engines:
        await asyncio.to_thread(one.process.wait, 2 * PATIENCE_SECONDS)


async def ready(engines: tuple[RealEngine, ...], logs: Path) -> None:
    """Wait until all of them answer."""

    def evidence() -> str:
        return "\n".join(log.read_text(errors="replace")[-3000:] for log in logs.glob("*.log"))

    await asyncio.gather(*(wait_for(engine.healthy, START_SECONDS, evidence) for engine in engines))
