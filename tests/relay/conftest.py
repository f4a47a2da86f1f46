"""A gateway before the fake engine, and the SDK pointed at it."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.fake_engine.handle import FakeEngine, Process
from tests.relay.calls import at_rest
from tests.running import Gateway, wait_for

CONFIG = """
[engine]
first_byte_timeout_seconds = 1.5
idle_timeout_seconds = 1

[server]
heartbeat_seconds = 0.5

[[models]]
id = "fake-model"
engines = ["{url}"]
"""


@pytest.fixture(scope="session")
async def impatient(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway whose time-outs are short enough to be waited for."""
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    async with Gateway(tmp_path_factory.mktemp("impatient"), config=CONFIG.format(url=url)) as running:
        yield running


@pytest.fixture
async def gateway(impatient: Gateway, fake_engine: FakeEngine) -> Gateway:
    """That gateway, its engine as fresh from the start."""
    assert fake_engine.process.alive
    return impatient


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The SDK without retries of its own."""
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        yield sdk


@pytest.fixture
async def leaves_nothing_behind(gateway: Gateway) -> AsyncIterator[None]:
    """After the test every slot is free again."""
    yield
    await wait_for(lambda: at_rest(gateway), 2)
