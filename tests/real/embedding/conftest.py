"""An engine with a real embedding model, and a gateway before it; both end before the chat engines start."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from deploy.local import engine
from deploy.local.problem import Problem
from tests.real import engines
from tests.real.embedding.weights import minilm
from tests.real.engines import RealEngine
from tests.running import Gateway

CONFIG = """
[[models]]
id = "{engine.model}"
aliases = ["text-embedding-3-small"]
engines = ["{engine.url}"]
"""


@pytest.fixture(scope="package")
async def embedder(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealEngine]:
    """The engine, loaded."""
    logs = tmp_path_factory.mktemp("embedder")
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    running = engines.start(minilm(), logs / "embedder.log")
    try:
        await engines.ready((running,), logs)
        yield running
    finally:
        await engines.stop((running,))


@pytest.fixture(scope="package")
async def gateway(embedder: RealEngine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """A gateway before it."""
    config = CONFIG.format(engine=embedder)
    async with Gateway(tmp_path_factory.mktemp("gateway"), config=config) as running:
        yield running


@pytest.fixture(scope="package")
async def client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The OpenAI SDK, pointed at the base URL and nothing else."""
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        yield sdk
