"""Stages for the same promises: a gateway before recordings, and before a real llama.cpp."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from deploy.local import llamacpp, preflight
from deploy.local.llamacpp import source
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.openai_engine import llama, recordings
from tests.openai_engine.calls import MODEL
from tests.openai_engine.recordings import Recording
from tests.running import Gateway

CONFIG = """
[log]
requests = "all"

[[models]]
id = "{model}"
aliases = ["default"]
engines = ["{url}"]
kind = "openai"
"""


class Stage:
    """A gateway and the engine behind it. `engine` plays recordings; it is None for the real one."""

    def __init__(self, gateway: Gateway, engine: FakeEngine | None) -> None:
        self.gateway = gateway
        self.engine = engine

    async def plays(self, name: str) -> Recording:
        """Has the next request to that call's path answered by its recording; the real one answers itself."""
        recording = recordings.load(name)
        if self.engine is not None:
            await play(self.engine, recording)
        return recording

    async def sent(self) -> Any:
        """The last body that the engine got, parsed. Only of the stage that plays recordings."""
        assert self.engine is not None
        return (await self.engine.requests())[-1].json()

    def sdk(self, key: str = "") -> AsyncOpenAI:
        """The OpenAI SDK, pointed at the gateway and nothing else."""
        return AsyncOpenAI(base_url=f"{self.gateway.url}/v1", api_key=key or self.gateway.key, max_retries=0)


async def play(engine: FakeEngine, recording: Recording, times: int | None = 1) -> None:
    """Answer the next requests to its path with a recording, in pieces that end where they like."""
    steps = [scripts.send(recording.response, split=331)]
    end: list[dict[str, Any]] = [{"close": True}] if recording.cut else []
    await engine.script([*steps, *end], path=recording.path, times=times)


@pytest.fixture(scope="package")
async def recorded_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """The one that plays recordings."""
    async with FakeEngine(models=[MODEL]) as engine:
        config = CONFIG.format(model=MODEL, url=engine.url)
        async with Gateway(tmp_path_factory.mktemp("recorded"), config=config) as gateway:
            yield Stage(gateway, engine)


@pytest.fixture(scope="package")
async def wheel_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """The one with llama.cpp itself, as its wheel has it."""
    async with before(llama.installed(), tmp_path_factory.mktemp("wheel")) as stage:
        yield stage


@pytest.fixture(scope="package")
async def compiled_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """The one with `llama-server`, once `tests/local/test_llamacpp.py` has compiled it."""
    target = source.folder(preflight.look())
    if not llamacpp.installed(target):
        pytest.skip("llama-server is not compiled here")
    async with before(target, tmp_path_factory.mktemp("compiled")) as stage:
        yield stage


@asynccontextmanager
async def before(server: Path, folder: Path) -> AsyncIterator[Stage]:
    """A gateway before a running llama.cpp."""
    async with llama.running(server, folder / "llama.log") as engine:
        config = CONFIG.format(model=MODEL, url=engine.url)
        async with Gateway(folder / "gateway", config=config) as gateway:
            yield Stage(gateway, None)


@pytest.fixture
async def recorded(recorded_stage: Stage) -> Stage:
    """The stage that plays recordings, as fresh from the start."""
    assert recorded_stage.engine is not None
    await recorded_stage.engine.reset()
    return recorded_stage


@pytest.fixture(
    params=[
        "recorded",
        pytest.param("wheel_stage", marks=pytest.mark.long),
        pytest.param("compiled_stage", marks=pytest.mark.long),
    ]
)
def stage(request: pytest.FixtureRequest) -> Stage:
    """Each stage in turn."""
    found: Stage = request.getfixturevalue(request.param)
    return found
