"""Gateways before the fake engine, and the SDK pointed at them: a patient one, and two in a hurry."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from openai import AsyncOpenAI

from tests.fake_engine.handle import FakeEngine, Process
from tests.relay.calls import at_rest
from tests.running import Gateway, wait_for

MODELS = """
[[models]]
id = "fake-model"
engines = ["{url}"]

[[models]]
id = "thinker"
engines = ["{url}"]
engine_model = "fake-model"
reasoning_content = true
"""
PATIENT = """
[server]
heartbeat_seconds = 0
"""
IMPATIENT = """
[engine]
first_byte_timeout_seconds = 1.5
idle_timeout_seconds = 1
"""
TALKATIVE = """
[server]
heartbeat_seconds = 0.3
"""


@pytest.fixture(scope="package")
async def started(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Gateway]]:
    """A gateway for each of these settings: a machine that halts is a time-out in none but one."""
    models = MODELS.format(url=f"http://127.0.0.1:{fake_engine_process.port}")
    gateways = {
        more: Gateway(tmp_path_factory.mktemp("relay"), config=more + models)
        for more in (PATIENT, IMPATIENT, TALKATIVE)
    }
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(gateway) for gateway in gateways.values()))
        yield gateways


@pytest.fixture
async def gateway(started: dict[str, Gateway], fake_engine: FakeEngine) -> Gateway:
    """One that waits and keeps silent for ever, its engine as fresh from the start."""
    assert fake_engine.process.alive
    return started[PATIENT]


@pytest.fixture
async def impatient(started: dict[str, Gateway], fake_engine: FakeEngine) -> AsyncIterator[Gateway]:
    """One whose time-outs are short enough to be waited for; afterwards every slot is free again."""
    assert fake_engine.process.alive
    yield started[IMPATIENT]
    await wait_for(lambda: at_rest(started[IMPATIENT]))


@pytest.fixture
async def talkative(started: dict[str, Gateway], fake_engine: FakeEngine) -> AsyncIterator[Gateway]:
    """One whose heartbeats come soon; afterwards every slot is free again."""
    assert fake_engine.process.alive
    yield started[TALKATIVE]
    await wait_for(lambda: at_rest(started[TALKATIVE]))


def sdk(gateway: Gateway) -> AsyncOpenAI:
    """The SDK without retries of its own."""
    return AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0)


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The SDK before the patient gateway."""
    async with sdk(gateway) as made:
        yield made


@pytest.fixture
async def leaves_nothing_behind(gateway: Gateway) -> AsyncIterator[None]:
    """After the test every slot is free again."""
    yield
    await wait_for(lambda: at_rest(gateway))
