"""Caddy before a real gateway before a fake engine: streams and departures all the way."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from tests.caddy.sites import Site
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.prompts import HELLO
from tests.running import Gateway

BOTH_PROTOCOLS = pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
MODEL = "fake-model"


@pytest.fixture(scope="module")
async def door(shared_gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """Caddy before the run's gateway."""
    port = int(shared_gateway.url.rpartition(":")[2])
    async with Site(tmp_path_factory.mktemp("door"), gateway=port) as running:
        yield running


def sdk(door: Site, gateway: Gateway, http2: bool = False) -> AsyncOpenAI:
    """The SDK over verified TLS, without retries that would hide a failure."""
    http = DefaultAsyncHttpxClient(verify=door.trust, http1=not http2, http2=http2, trust_env=False)
    return AsyncOpenAI(base_url=f"{door.url}/v1", api_key=gateway.key, max_retries=0, http_client=http)


@BOTH_PROTOCOLS
async def test_each_token_arrives_when_it_is_made(
    door: Site, gateway: Gateway, fake_engine: FakeEngine, http2: bool
) -> None:
    """The engine writes one only when the one before has been read."""
    clock = asyncio.get_running_loop().time
    delays = []
    await fake_engine.script(scripts.stream(5, gate="next"))
    async with sdk(door, gateway, http2) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        chunks = aiter(stream)
        await anext(chunks)  # the role, before any token
        for _ in range(5):
            opened = clock()
            await fake_engine.open_gate("next")
            async with asyncio.timeout(60):
                assert (await anext(chunks)).choices[0].delta.content
            delays.append(clock() - opened)
        assert [chunk.choices[0].finish_reason async for chunk in chunks] == ["stop"]
    assert min(delays) < 0.2  # others may wait for a busy machine, but a clock's beat delays all


@BOTH_PROTOCOLS
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_departure_frees_the_engine(
    door: Site, gateway: Gateway, fake_engine: FakeEngine, http2: bool, stream: bool
) -> None:
    """In the middle of a stream and while a plain answer is awaited."""
    await fake_engine.script(scripts.stream(1, end="hang") if stream else [{"hang": True}])
    async with sdk(door, gateway, http2) as client:
        calling = asyncio.create_task(_read_all(client, stream))
        await fake_engine.wait(running=1)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
    await fake_engine.wait(running=0, aborted=1)


async def _read_all(client: AsyncOpenAI, stream: bool) -> None:
    if stream:
        async for _ in await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True):
            pass
    else:
        await client.chat.completions.create(model=MODEL, messages=HELLO)
