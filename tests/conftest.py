"""What tests of a running gateway share: the fake engine, and a gateway before it for the whole run."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.fake_engine.fixtures import fake_engine, fake_engine_process
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, http_client

__all__ = ["fake_engine", "fake_engine_process"]

# A slow machine or a rare example is no reason to fail: the same examples each time, however long they take.
settings.register_profile(
    "tests", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

# Without heartbeats, no time-out of half a minute or less ends a call: what ends is ended by who left.
CONFIG = """
[server]
heartbeat_seconds = 0

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


PREPARING = pytest.StashKey["subprocess.Popen[bytes]"]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before a run of all rooms, begin with what the late ones need: it takes minutes the first time."""
    rooms = {item.path.relative_to(Path(__file__).parent).parts[0] for item in session.items}
    if rooms > {"app", "stack"} and not session.config.option.collectonly:
        # Its own words are of no use: whatever it could not do, a test does again and says why it cannot.
        with tempfile.TemporaryFile() as words:
            session.config.stash[PREPARING] = subprocess.Popen(
                [sys.executable, "-m", "tests.prepare"],
                cwd=session.config.rootpath, stdin=subprocess.PIPE, stdout=words, stderr=words,
            )  # fmt: skip


def pytest_unconfigure(config: pytest.Config) -> None:
    """It ends with the tests."""
    if preparing := config.stash.get(PREPARING, None):
        preparing.communicate()


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
