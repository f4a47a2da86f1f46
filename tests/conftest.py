"""What tests of a running gateway share: the fake engine, and a gateway before it for the whole run."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.fake_engine.fixtures import fake_engine, fake_engine_process
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, http_client

__all__ = ["fake_engine", "fake_engine_process"]

CONFIG = """
[log]
requests = "all"

[[models]]
id = "fake-model"
aliases = ["default", "org/model", "claude-*"]
engines = ["{url}"]

[models.variants.thinking]
defaults = {{ chat_template_kwargs = {{ enable_thinking = true }} }}

[[models]]
id = "other-model"
engines = ["{url}"]
engine_model = "fake-model"
"""


@pytest.fixture(scope="session")
async def shared_gateway(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """One process for the whole run, with its defaults, two models and a log line for each request."""
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    environ = {"GATEWAY_UPSTREAM_API_KEY": "the-engines-own-key"}
    async with Gateway(
        tmp_path_factory.mktemp("shared"), config=CONFIG.format(url=url), **environ
    ) as running:
        yield running


@pytest.fixture
async def gateway(shared_gateway: Gateway, fake_engine: FakeEngine) -> Gateway:
    """That gateway before an engine as fresh from the start; for tests that leave it as it was."""
    assert fake_engine.process.alive
    return shared_gateway


@pytest.fixture(scope="session")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client without retries."""
    async with http_client() as client:
        yield client
