"""Over HTTPS with verification on, all is as without it: streams, departures, pauses, restarts."""

import asyncio
import json
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from tests.prompts import CAPITAL
from tests.real.caddy import Caddy
from tests.real.conftest import Real
from tests.real.engines import LONG_TOKENS
from tests.running import Gateway, wait_for

CALLERS, CALLS_EACH = 50, 4
KNOCK_SECONDS = 0.05
BUSY_SECONDS = 180.0


@pytest.fixture(scope="module")
async def caddy(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caddy]:
    """Caddy before the run's gateway."""
    async with Caddy(tmp_path_factory.mktemp("caddy"), gateway) as running:
        yield running


@asynccontextmanager
async def sdk(caddy: Caddy, gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The SDK over TLS, without retries that would hide a failure."""
    http = DefaultAsyncHttpxClient(verify=caddy.trust)
    async with AsyncOpenAI(
        base_url=f"{caddy.url}/v1", api_key=gateway.key, max_retries=0, http_client=http
    ) as client:
        yield client


@pytest.fixture
async def client(caddy: Caddy, gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """That SDK before the run's gateway."""
    async with sdk(caddy, gateway) as made:
        yield made


async def test_a_chat_is_answered_over_verified_tls(client: AsyncOpenAI) -> None:
    """The certificate is the gateway's own authority's, and it is checked."""
    answer = await client.chat.completions.create(
        model="default", messages=CAPITAL, temperature=0, max_tokens=24
    )
    assert "Paris" in (answer.choices[0].message.content or "")


async def test_without_the_bundle_nobody_is_trusted(caddy: Caddy) -> None:
    """Verification is real: the same call fails with the system's roots alone."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            await http.get(f"{caddy.url}/healthz")


async def test_a_stream_arrives_chunk_by_chunk(client: AsyncOpenAI, real: Real) -> None:
    """Not when the answer is whole: the engine still works on it when the first ten are there."""
    async with (
        real.chat.stops_early(),
        await client.chat.completions.create(
            model=real.chat.model, messages=CAPITAL, max_tokens=LONG_TOKENS, stream=True,
            extra_body={"ignore_eos": True},
        ) as stream,
    ):  # fmt: skip
        chunks = aiter(stream)
        pieces = [(await anext(chunks)).choices[0].delta.content for _ in range(10)]
        assert await real.chat.busy()
    assert any(pieces)


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_departure_is_passed_on(
    caddy: Caddy, gateway: Gateway, real: Real, version: str, *, stream: bool
) -> None:
    """curl ends, and the engine does not finish for nobody what it has begun."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl on this machine")
    call = {"model": real.chat.model, "max_tokens": LONG_TOKENS, "ignore_eos": True, "stream": stream}
    body = json.dumps({**call, "messages": [{"role": "user", "content": "Count."}]})
    async with real.chat.stops_early():
        process = await asyncio.create_subprocess_exec(
            curl, "-sN", version, "--cacert", str(caddy.bundle), f"{caddy.url}/v1/chat/completions",
            "-H", f"Authorization: Bearer {gateway.key}", "-H", "Content-Type: application/json", "-d", body,
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await wait_for(real.chat.busy, BUSY_SECONDS, gateway.log)
        process.kill()
        await process.wait()


async def test_calls_with_pauses_around_the_engines_keep_alive_never_fail(
    client: AsyncOpenAI, real: Real
) -> None:
    """The engine closes idle connections after 5 s: 150 calls just then, and not one 502."""

    async def caller(seed: int) -> None:
        pauses = random.Random(seed)  # noqa: S311  pauses, no secrets
        await client.completions.create(model=real.tiny.model, prompt="x", max_tokens=1)
        for _ in range(CALLS_EACH - 1):
            await asyncio.sleep(pauses.uniform(4.7, 5.3))
            await client.completions.create(model=real.tiny.model, prompt="x", max_tokens=1)

    await asyncio.gather(*(caller(seed) for seed in range(CALLERS)))


async def test_a_stop_and_start_of_the_gateway_is_never_a_502(
    real: Real, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The running stream ends whole, new calls are 503 with a wait, and afterwards all is as before."""
    folder = tmp_path_factory.mktemp("restart")
    async with (
        Gateway(folder / "gateway", config=real.config, GATEWAY_SERVER__DRAIN_SECONDS="300") as gateway,
        Caddy(folder / "caddy", gateway) as caddy,
        sdk(caddy, gateway) as client,
    ):
        stream = await client.chat.completions.create(
            model=real.chat.model, messages=CAPITAL, max_tokens=50, stream=True,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        stopped = asyncio.create_task(gateway.stop())
        refusals: list[openai.APIStatusError] = []
        knocking = asyncio.create_task(_knock(client, stopped, refusals))
        reasons = [chunk.choices[0].finish_reason async for chunk in stream]
        assert reasons[-1] == "length"
        assert await stopped == 0
        await knocking
        assert refusals
        assert {(refusal.status_code, refusal.code) for refusal in refusals} == {(503, "shutting_down")}
        assert all(refusal.response.headers["retry-after"] for refusal in refusals)
        await gateway.start()
        assert (await client.models.list()).data


async def _knock(
    client: AsyncOpenAI, stopped: "asyncio.Task[int]", refusals: list[openai.APIStatusError]
) -> None:
    """Call again and again until the gateway is gone, and once more then."""
    gone = False
    while not gone:
        gone = stopped.done()
        try:
            await client.models.list()
        except openai.APIStatusError as refusal:
            refusals.append(refusal)
        await asyncio.wait([stopped], timeout=KNOCK_SECONDS)
