"""A gateway with little room for bodies, one for all tests of this room."""

from collections.abc import AsyncIterator

import pytest

from tests.fake_engine.handle import FakeEngine, Process
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
