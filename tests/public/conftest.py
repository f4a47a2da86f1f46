"""A gateway with little room for bodies and one for keys with limits, each for all tests of this room."""

from collections.abc import AsyncIterator

import pytest

from tests.fake_engine.handle import FakeEngine, Process
from tests.public.metered import config
from tests.running import Gateway


@pytest.fixture(scope="session")
async def shared_narrow(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """Room for two bodies of a megabyte."""
    environ = {
        "GATEWAY_SERVER__MAX_BODY_BYTES": "1000000",
        "GATEWAY_SERVER__MAX_BUFFERED_BYTES": "2000000",
        "GATEWAY_UPSTREAM_URL": f"http://127.0.0.1:{fake_engine_process.port}",
    }
    async with Gateway(tmp_path_factory.mktemp("narrow"), **environ) as running:
        yield running


@pytest.fixture
async def narrow(shared_narrow: Gateway, fake_engine: FakeEngine) -> Gateway:
    """That gateway before an engine as fresh from the start."""
    assert fake_engine.process.alive
    return shared_narrow


@pytest.fixture(scope="package")
async def shared_metered(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """For keys with limits: nobody else's calls are in what it learns of its models."""
    settings = config(f"http://127.0.0.1:{fake_engine_process.port}")
    async with Gateway(tmp_path_factory.mktemp("metered"), config=settings) as running:
        yield running


@pytest.fixture
async def metered(shared_metered: Gateway, fake_engine: FakeEngine) -> Gateway:
    """That gateway before an engine as fresh from the start."""
    assert fake_engine.process.alive
    return shared_metered
