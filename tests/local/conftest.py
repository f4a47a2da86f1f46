"""One Caddy for the tests of this folder, and an upstream for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.local.caddies import Caddy
from tests.local.upstream import Upstream


@pytest.fixture(scope="session")
async def caddy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caddy]:
    """A running Caddy; what it passes on goes to the port where `upstream` listens."""
    async with Caddy(tmp_path_factory.mktemp("caddy")) as running:
        yield running


@pytest.fixture
async def upstream(caddy: Caddy) -> AsyncIterator[Upstream]:
    """The scripted server behind that Caddy."""
    async with Upstream(caddy.ports.gateway) as server:
        yield server
