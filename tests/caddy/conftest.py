"""One Caddy for the tests of this folder, and for each test what stands behind it."""

from collections.abc import AsyncIterator

import pytest

from tests.caddy.sites import Site
from tests.local.upstream import Upstream


@pytest.fixture(scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A running Caddy for localhost and 127.0.0.1, with its own authority."""
    async with Site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
async def upstream(site: Site) -> AsyncIterator[Upstream]:
    """The scripted server where that Caddy expects the gateway."""
    async with Upstream(site.gateway) as server:
        yield server


@pytest.fixture
async def grafana(site: Site) -> AsyncIterator[Upstream]:
    """The scripted server where that Caddy expects Grafana."""
    async with Upstream(site.grafana) as server:
        yield server
