"""Two real engines and a gateway before them, for this folder: the stack, which comes later, has its own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from tests.real import engines
from tests.real.engines import RealEngine
from tests.running import Gateway

CONFIG = """
[engine]
keep_alive_seconds = 4
start_seconds = 86400

[[models]]
id = "{chat.model}"
aliases = ["default"]
engines = ["{chat.url}"]

[models.defaults]
temperature = 0

[[models]]
id = "{tiny.model}"
engines = ["{tiny.url}"]

[models.defaults]
chat_template_kwargs = {{ enable_thinking = false }}

[models.variants.thinking]
defaults = {{ chat_template_kwargs = {{ enable_thinking = true }} }}

[[models]]
id = "absent"
engines = ["http://127.0.0.1:1"]
"""


@dataclass(frozen=True, slots=True)
class Real:
    """`chat` answers in English; `tiny` speaks noise at once and has a template that knows thinking.

    The gateway makes `chat` greedy where a caller is silent, so that its answers are the same each time, and
    knows a third model, `absent`, whose engine nobody has started.
    """

    chat: RealEngine
    tiny: RealEngine

    @property
    def config(self) -> str:
        """A gateway.toml for both."""
        return CONFIG.format(chat=self.chat, tiny=self.tiny)


@pytest.fixture(scope="package")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Real]:
    """The engines, loaded."""
    chat, tiny = engines.prepare()
    logs: Path = tmp_path_factory.mktemp("engines")
    both = engines.start(chat, logs / "chat.log"), engines.start(tiny, logs / "tiny.log")
    try:
        await engines.ready(both, logs)
        yield Real(*both)
    finally:
        await engines.stop(both)


@pytest.fixture(scope="package")
async def gateway(real: Real, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """One gateway before both engines, for tests that leave it as it was."""
    async with Gateway(tmp_path_factory.mktemp("gateway"), config=real.config) as running:
        yield running


@pytest.fixture(scope="package")
async def client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The OpenAI SDK, pointed at the base URL and nothing else."""
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        yield sdk
