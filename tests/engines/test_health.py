"""What the probes ask an engine, and what they conclude from its answers."""

import pytest
from structlog.testing import capture_logs

from gateway.engines import Registry
from gateway.errors import EngineLoading, EngineUnavailable
from gateway.metrics import Metrics
from gateway.settings import Model, Settings
from tests.engines.calls import probed, until
from tests.engines.loops import on_each_loop
from tests.engines.test_registry import configured, registry, up
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (scripts.error(401, "Unauthorized"), "GATEWAY_UPSTREAM_API_KEY"),
        (scripts.error(500, "Boom"), "500"),
        (scripts.answer("<html>", content_type="text/html"), "no list of models"),
        (scripts.answer("[1]"), "no list of models"),
        (scripts.answer('{"data": [{"id": 5}]}'), "no list of models"),
        (scripts.answer('{"data": ["fake-model"]}'), "no list of models"),
        (scripts.models(), "no model"),
        (scripts.models("*"), "no model"),
        (scripts.garbage(), "HTTP"),
    ],
)
@on_each_loop
async def test_an_upstream_without_models_is_not_ready_and_says_why(
    engine: FakeEngine, steps: scripts.Steps, reason: str
) -> None:
    """The operator reads in /readyz what is wrong; the key is not in it."""
    await engine.script(steps, path="/v1/models")
    async with probed(registry(engine, upstream_api_key="engine-key")) as known:
        ready, reasons = known.ready()
        assert (ready, len(reasons), known.discovered) == (False, 1, False)
        assert reason in reasons[0]
        assert "engine-key" not in reasons[0]


@pytest.mark.parametrize(
    ("health", "models", "is_up"),
    [
        (scripts.answer(), scripts.error(500, "not asked"), True),
        (scripts.loading(), scripts.models("m"), False),
        (scripts.error(404, "Not Found"), scripts.models("m"), True),
        (scripts.error(405, "Method Not Allowed"), scripts.models("m"), True),
        (scripts.error(404, "Not Found"), scripts.error(503, "Loading model"), False),
        (scripts.error(500, "Boom"), scripts.error(500, "Boom"), False),
        ([{"close": True}], scripts.models("m"), False),
    ],
)
@on_each_loop
async def test_an_engine_is_up_if_its_health_says_so_or_else_its_list_of_models(
    engine: FakeEngine, health: scripts.Steps, models: scripts.Steps, is_up: bool
) -> None:
    """503 on /health means a dead or loading engine; a server without /health is asked for its models."""
    await engine.script(health, path="/health")
    await engine.script(models, path="/v1/models")
    metrics = Metrics()
    async with probed(Registry(configured(engine.url), metrics)) as known:
        assert known.discovered
        assert known.ready()[0] is is_up
        assert up(metrics, engine.url) == float(is_up)


@on_each_loop
async def test_each_probe_takes_a_connection_of_its_own(engine: FakeEngine) -> None:
    """So that it shows whether new ones are taken, and never trips over one that the engine gave up."""
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        [found] = known.engines_of(known.models[0])
        found.probed.clear()
        found.note_failure()
        await found.probed.wait()
        probes = await engine.requests("/health")
    assert len({probe.connection for probe in probes}) == len(probes) == 2


@on_each_loop
async def test_the_upstreams_key_is_shown_to_it(engine: FakeEngine) -> None:
    """As a bearer token."""
    async with probed(registry(engine, upstream_api_key="engine-key")):
        pass
    [request] = await engine.requests("/v1/models")
    assert request.header("authorization") == "Bearer engine-key"


@on_each_loop
async def test_the_environments_proxies_are_not_asked_by_probes(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine is inside the operator's network."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with probed(registry(engine)) as known:
        assert known.ready()[0]


@pytest.mark.parametrize(
    ("health", "models", "is_loading"),
    [
        (scripts.loading(), scripts.models("m"), True),
        (scripts.error(404, "Not Found"), scripts.loading(), True),
        ([{"close": True}], scripts.models("m"), True),
        (scripts.error(404, "Not Found"), scripts.error(400, "Bad Request"), False),
        (scripts.error(401, "Unauthorized"), scripts.error(401, "Unauthorized"), False),
        (scripts.error(403, "Forbidden"), scripts.error(403, "Forbidden"), False),
        (scripts.error(404, "Not Found"), scripts.error(404, "Not Found"), False),
    ],
)
@on_each_loop
async def test_what_waiting_will_not_mend_does_not_count_as_loading(
    engine: FakeEngine, health: scripts.Steps, models: scripts.Steps, is_loading: bool
) -> None:
    """Only who cannot be reached or answers 503 may be starting; the others are unavailable at once."""
    await engine.script(health, path="/health")
    await engine.script(models, path="/v1/models")
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        [found] = known.engines_of(known.models[0])
        assert not found.up
        error = known.unreachable(found, found.reason)
        assert type(error) is (EngineLoading if is_loading else EngineUnavailable)
        await engine.reset()
        await engine.script(scripts.loading(), path="/health")
        await until(lambda: type(known.unreachable(found, "")) is EngineLoading)


@on_each_loop
async def test_a_model_that_its_engine_does_not_list_is_told(engine: FakeEngine) -> None:
    """Once in the log and in /readyz, which stays ready; until the engine lists it."""
    await engine.script(scripts.models("Org/Name", "adapter"), path="/v1/models")
    settings = Settings(
        models=(
            Model(id="m", engines=(engine.url,)),
            Model(id="n", engine_model="adapter", engines=(engine.url,)),
            Model(id="o", engines=(engine.url,), kind="openai"),
        )
    )
    with capture_logs() as logs:
        async with probed(Registry(settings, Metrics())) as known:
            ready, [line] = known.ready()
            assert ready
            for part in (engine.url, "model m:", "Org/Name, adapter", "set engine_model"):
                assert part in line
            [found] = known.engines_of(known.models[0])
            found.probed.clear()
            found.note_failure()
            await found.probed.wait()
            assert known.ready() == (True, [line])
            await engine.reset()
            await engine.script(scripts.models("m", "adapter"), path="/v1/models")
            found.note_failure()
            await until(lambda: known.ready() == (True, []))
    [told] = [each for each in logs if each["event"] == "model_not_served"]
    assert (told["model"], told["engine"], told["log_level"]) == ("m", engine.url, "warning")
    assert (told["lists"], told["mend"]) == (["Org/Name", "adapter"], "set engine_model")


@on_each_loop
async def test_the_list_is_asked_for_when_an_engine_comes_up_and_not_by_every_probe(
    engine: FakeEngine,
) -> None:
    """Nor is an engine down because its list cannot be had: its health has said that it is well."""
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        [found] = known.engines_of(known.models[0])
        found.probed.clear()
        found.note_failure()
        await found.probed.wait()
        assert len(await engine.requests("/v1/models")) == 1
        await engine.script(scripts.error(500, "Boom"), path="/v1/models")
        await known.replace(configured(engine.url))
        found.probed.clear()
        await found.probed.wait()
        assert len(await engine.requests("/v1/models")) == 2
        assert known.ready() == (True, [])
