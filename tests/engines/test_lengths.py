"""How many tokens a prompt and its answer may have: told by engines, passed on to who asks for models."""

from typing import Any

import pytest

from gateway.engines import Registry
from gateway.metrics import Metrics
from gateway.settings import Model, Settings
from tests.engines.calls import probed
from tests.engines.loops import on_each_loop
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine


async def tells(engine: FakeEngine, length: Any) -> None:
    """Let the engine list its model with this length."""
    await engine.script(scripts.models("fake-model", max_model_len=length), path="/v1/models")


@on_each_loop
async def test_a_discovered_model_has_the_length_that_its_engine_tells(engine: FakeEngine) -> None:
    """The shortcut without [[models]]."""
    await tells(engine, 4096)
    async with probed(Registry(Settings(upstream_url=engine.url), Metrics())) as known:
        assert known.max_model_len(known.models[0]) == 4096


@on_each_loop
async def test_a_model_on_several_engines_is_as_long_as_the_shortest(engine: FakeEngine) -> None:
    """A prompt must fit wherever it goes; the engine's name for it counts."""
    await tells(engine, 4096)
    async with FakeEngine() as other:
        await tells(other, 2048)
        model = Model(id="m", engine_model="fake-model", engines=(engine.url, other.url))
        async with probed(Registry(Settings(models=(model,)), Metrics())) as known:
            assert known.max_model_len(model) == 2048


@pytest.mark.parametrize("length", [None, 0, -1, "4096", True, 4096.0])
async def test_what_is_no_length_is_not_known(fake_engine: FakeEngine, length: Any) -> None:
    """Other servers have other habits."""
    await tells(fake_engine, length)
    async with probed(Registry(Settings(upstream_url=fake_engine.url), Metrics())) as known:
        assert known.max_model_len(known.models[0]) is None
