"""A gateway of its own for this folder: its log must stay silent, and its bounds are small."""

from collections.abc import AsyncIterator

import pytest

from tests.fake_engine.fixtures import fresh
from tests.fake_engine.handle import FakeEngine, Process
from tests.fuzz import gateways
from tests.fuzz.gateways import Fuzzed
from tests.running import Gateway


@pytest.fixture(scope="package")
async def fuzzed_gateway(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """One process for all fuzzing."""
    async with fresh(fake_engine_process) as engine:
        running = gateways.gateway(tmp_path_factory.mktemp("fuzzed"), engine)
    async with running:
        yield running


@pytest.fixture
async def fuzzed(fuzzed_gateway: Gateway, fake_engine: FakeEngine) -> Fuzzed:
    """That gateway, with a key of the test's own, before a fresh engine."""
    key = await fuzzed_gateway.create_key(name="fuzz", max_parallel=10_000)
    made = Fuzzed(fuzzed_gateway, fake_engine, key["key"], key["id"])
    made.complaints()
    return made
