"""For the tests of this folder: one Caddy and an upstream for each, checkouts, a model."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.box.boxes import Box
from tests.box.planned import CONFIG
from tests.local.caddies import Caddy
from tests.local.checkouts import UP_SECONDS, Checkout
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


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A checkout in which `make` finds scripted programs alone, and no GPU."""
    return Box(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model's config, and no weights."""
    made = tmp_path / "Tiny-Model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG))
    return made


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A fresh checkout."""
    fresh = Checkout(tmp_path_factory.mktemp("fresh").resolve() / "checkout")
    yield fresh
    if fresh.processes():
        fresh.make("down", UP_SECONDS)
