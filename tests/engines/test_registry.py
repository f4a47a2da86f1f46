"""Which engines are up, which models they serve, and what a caller is told when none can be reached."""

import asyncio
from typing import Any

from structlog.testing import capture_logs

from gateway.engines import Registry
from gateway.errors import EngineLoading, EngineUnavailable, GatewayError
from gateway.metrics import Metrics
from gateway.settings import Engine as EngineSettings
from gateway.settings import Model, Settings
from tests.engines.calls import call, probed, until
from tests.engines.loops import on_each_loop
from tests.engines.networks import black_hole
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine


def registry(engine: FakeEngine, **settings: Any) -> Registry:
    """A registry that discovers the models of this engine."""
    return Registry(Settings(upstream_url=engine.url, **settings), Metrics())


def configured(*urls: str, **settings: Any) -> Settings:
    """Settings with one model on these engines, which list it under a name of their own."""
    return Settings(models=(Model(id="m", engine_model="fake-model", engines=urls),), **settings)


def up(metrics: Metrics, url: str) -> float | None:
    """The engine_up metric of an engine."""
    return metrics.registry.get_sample_value("gateway_engine_up", {"engine": url})


@on_each_loop
async def test_the_models_of_the_upstream_are_known_at_once(engine: FakeEngine) -> None:
    """An engine that is up when the gateway starts serves its first caller."""
    async with probed(registry(engine)) as known:
        assert known.models == (Model(id="fake-model", engines=(engine.url,), engine_model="fake-model"),)
        assert known.discovered
        assert known.ready() == (True, [])
        [found] = known.engines_of(known.models[0])
        assert (found.up, found.url) == (True, engine.url)
        assert (await call(found.client))[0] == 200


@on_each_loop
async def test_an_engine_that_comes_later_is_found(engine: FakeEngine) -> None:
    """Until then nothing is ready, and every model's name is told that the engine is loading."""
    await engine.listen(False)
    async with probed(registry(engine)) as known:
        changes: list[tuple[Model, ...]] = []
        known.subscribe(lambda: changes.append(known.models))
        assert (known.models, known.discovered) == ((), False)
        ready, [reason] = known.ready()
        assert not ready
        assert reason.startswith(f"{engine.url}: ")
        assert "not probed" not in reason
        assert isinstance(known.undiscovered(), EngineLoading)
        await engine.listen()
        await until(lambda: known.ready()[0])
        assert [[model.id for model in models] for models in changes] == [["fake-model"]]


@on_each_loop
async def test_a_model_that_was_swapped_is_seen(engine: FakeEngine) -> None:
    """The list is asked for again, at once after a live failure, and whoever depends on it is told."""
    async with probed(registry(engine)) as known:
        changes: list[list[str]] = []
        known.subscribe(lambda: changes.append([model.id for model in known.models]))
        await engine.script(scripts.models("other", "adapter"), path="/v1/models")
        known.engines_of(known.models[0])[0].note_failure()
        await until(lambda: changes)
        assert changes == [["other", "adapter"]]


@on_each_loop
async def test_the_models_of_an_engine_that_is_away_stay_known(engine: FakeEngine) -> None:
    """Its callers are told that the engine is away, not that there is no such model."""
    async with probed(registry(engine)) as known:
        [found] = known.engines_of(known.models[0])
        await engine.listen(False)
        found.note_failure()
        await until(lambda: not found.up)
        assert [model.id for model in known.models] == ["fake-model"]
        assert known.discovered


@on_each_loop
async def test_a_live_failure_is_looked_into_at_once(engine: FakeEngine) -> None:
    """Not only when the next probe is due, ten seconds later; and the way back is seen too."""
    metrics = Metrics()
    async with probed(Registry(configured(engine.url), metrics)) as known:
        [found] = known.engines_of(known.models[0])
        found.note_failure()
        await asyncio.sleep(0)
        assert found.up
        await engine.listen(False)
        found.note_failure()
        await until(lambda: not found.up)
        assert up(metrics, engine.url) == 0
        assert not known.ready()[0]
        await engine.listen()
        found.note_success()
        await until(lambda: found.up)
        assert up(metrics, engine.url) == 1


@on_each_loop
async def test_changes_are_logged_once_each(engine: FakeEngine) -> None:
    """Not every probe is a line."""
    with capture_logs() as logs:
        async with probed(registry(engine)) as known:
            [found] = known.engines_of(known.models[0])
            await engine.listen(False)
            for _ in range(3):
                found.probed.clear()
                found.note_failure()
                await found.probed.wait()
            assert not found.up
            await engine.listen()
            await until(lambda: found.up)
    events = [line["event"] for line in logs]
    assert events == ["models_discovered", "engine_up", "engine_down", "engine_up"]
    assert all(line["engine"] == engine.url for line in logs)


def told(error: GatewayError) -> tuple[type[GatewayError], int | None]:
    """What an error tells the caller; nothing of the inside may be in it."""
    for secret in ("127.0.0.1", "http", "Error", "refused", "errno"):
        assert secret not in error.message
    assert "connection refused" in (error.cause or "")
    return type(error), error.retry_after


LOADING = (EngineLoading, 15)
UNAVAILABLE = (EngineUnavailable, 5)


@on_each_loop
async def test_an_unreachable_engine_is_loading_for_as_long_as_a_start_takes(engine: FakeEngine) -> None:
    """Counted from the gateway's start, or from when the engine was lost; then it is unavailable."""
    now = 1000.0
    settings = configured(engine.url, engine=EngineSettings(start_seconds=900))
    await engine.listen(False)
    async with probed(Registry(settings, Metrics(), clock=lambda: now)) as known:
        [found] = known.engines_of(known.models[0])

        def seen() -> tuple[type[GatewayError], int | None]:
            return told(known.unreachable(found, "connection refused"))

        assert seen() == LOADING
        now += 899
        assert seen() == LOADING
        now += 2
        assert seen() == UNAVAILABLE
        await engine.listen()
        await until(lambda: found.up)
        assert seen() == LOADING
        await engine.listen(False)
        found.note_failure()
        await until(lambda: not found.up)
        now += 899
        assert seen() == LOADING
        now += 2
        assert seen() == UNAVAILABLE


@on_each_loop
async def test_with_start_seconds_0_nothing_counts_as_loading(engine: FakeEngine) -> None:
    """Engines that the operator never starts and stops."""
    await engine.listen(False)
    settings = configured(engine.url, engine=EngineSettings(start_seconds=0))
    async with probed(Registry(settings, Metrics())) as known:
        assert (
            told(known.unreachable(known.engines_of(known.models[0])[0], "connection refused")) == UNAVAILABLE
        )


@on_each_loop
async def test_engines_that_are_up_come_first_then_the_least_busy(engine: FakeEngine) -> None:
    """One that is down is still among them: the live request knows better."""
    await engine.script([{"hang": True}])
    async with FakeEngine() as other, FakeEngine() as gone:
        await gone.listen(False)
        async with probed(Registry(configured(gone.url, engine.url, other.url), Metrics())) as known:
            await until(lambda: sum(found.up for found in known.engines_of(known.models[0])) == 2)
            ordered = known.engines_of(known.models[0])
            assert [found.url for found in ordered] == [engine.url, other.url, gone.url]
            exchange = await ordered[0].client.send(b"POST", b"/v1/completions", [], b"{}")
            ordered = known.engines_of(known.models[0])
            assert [found.url for found in ordered] == [other.url, engine.url, gone.url]
            exchange.close()
            assert known.engines_of(known.models[0])[0].url == engine.url


@on_each_loop
async def test_a_retry_on_a_fresh_connection_is_counted(engine: FakeEngine) -> None:
    """By engine."""
    metrics = Metrics()
    await engine.script(scripts.chat(), times=1)
    await engine.script([{"close": True}], times=1)
    async with probed(Registry(configured(engine.url), metrics)) as known:
        client = known.engines_of(known.models[0])[0].client
        await call(client)
        await call(client)
    labels = {"engine": engine.url}
    assert metrics.registry.get_sample_value("gateway_engine_reconnects_total", labels) == 1


@on_each_loop
async def test_an_engine_that_hangs_does_not_hold_the_start() -> None:
    """Nobody waits longer than a moment for a machine that is switched off."""
    loop = asyncio.get_running_loop()
    with black_hole() as port:
        waited = []
        for _ in range(3):  # a machine that stands still delays one of them
            began = loop.time()
            async with Registry(configured(f"http://127.0.0.1:{port}"), Metrics()) as known:
                waited.append(loop.time() - began)
                assert not known.ready()[0]
            if waited[-1] < 2:
                break
    assert min(waited) < 2


@on_each_loop
async def test_closing_leaves_nothing_behind(engine: FakeEngine) -> None:
    """No task, no connection."""
    async with probed(registry(engine)) as known:
        await call(known.engines_of(known.models[0])[0].client)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await engine.wait(open=0)
