"""What a registry does when the operator changes the settings under it."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trustme

from gateway.engines import Registry
from gateway.errors import EngineUnavailable
from gateway.metrics import Metrics
from gateway.settings import Engine as EngineSettings
from gateway.settings import Settings, SettingsError
from tests.engines.calls import call, post, probed, rest, until
from tests.engines.loops import on_each_loop
from tests.engines.test_registry import configured, up
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine


@on_each_loop
async def test_known_engines_stay_and_others_come_and_go(engine: FakeEngine) -> None:
    """A running stream of an engine that goes is not cut; its metric goes with it."""
    metrics = Metrics()
    async with FakeEngine() as other, probed(Registry(configured(engine.url), metrics)) as known:
        [before] = known.engines_of(known.models[0])
        await engine.script(scripts.stream(events=1, gate="next"))
        running = await post(before.client)
        await known.replace(configured(engine.url, other.url))
        assert before.up
        assert before in known.engines_of(known.models[0])
        await until(lambda: all(found.up for found in known.engines_of(known.models[0])))
        await known.replace(configured(other.url))
        assert [found.url for found in known.engines_of(known.models[0])] == [other.url]
        assert up(metrics, engine.url) is None
        await engine.open_gate("next")
        assert (await rest(running)).endswith(b"data: [DONE]\n\n")
        running.close()
        await engine.wait(open=0)


@on_each_loop
async def test_changed_timeouts_hold_for_new_requests(engine: FakeEngine) -> None:
    """The engine's health stays known, its connections are made anew."""
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        [found] = known.engines_of(known.models[0])
        client = found.client
        await known.replace(configured(engine.url))
        assert found.client is client
        await known.replace(configured(engine.url, engine=EngineSettings(keep_alive_seconds=1)))
        assert found.client is not client
        assert found.up


@on_each_loop
async def test_discovered_models_survive_a_reload(engine: FakeEngine) -> None:
    """They are forgotten only when the operator names models, or another upstream."""
    async with probed(Registry(Settings(upstream_url=engine.url), Metrics())) as known:
        found = known.models
        await known.replace(Settings(upstream_url=engine.url))
        assert known.models == found
        await known.replace(configured(engine.url))
        assert [model.id for model in known.models] == ["m"]
        await known.replace(Settings(upstream_url=engine.url))
        assert not known.discovered
        await until(lambda: known.models == found)


@on_each_loop
async def test_a_ca_file_that_cannot_be_used_changes_nothing(engine: FakeEngine, tmp_path: Path) -> None:
    """The old settings stay in force, and the message names the setting and the mend."""
    (tmp_path / "ca.pem").write_text("no certificate")
    bad = configured("https://127.0.0.1:9", engine=EngineSettings(ca_file=str(tmp_path / "ca.pem")))
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        with pytest.raises(SettingsError, match=r"engine\.ca_file.*PEM"):
            await known.replace(bad)
        [found] = known.engines_of(known.models[0])
        assert (found.url, found.up) == (engine.url, True)
        await engine.listen(False)
        found.note_failure()
        await until(lambda: not found.up)


@pytest.mark.parametrize("url", ["http://a..b", "http://127.0.0.1:9/gpü"])
@on_each_loop
async def test_an_engine_that_cannot_be_addressed_changes_nothing(engine: FakeEngine, url: str) -> None:
    """What no setting's own check finds is found before anything has changed."""
    async with probed(Registry(configured(engine.url), Metrics())) as known:
        with pytest.raises(SettingsError, match="engine's URL"):
            await known.replace(configured(url))
        assert known.ready() == (True, [])


@on_each_loop
async def test_an_https_engine_is_probed_and_called_with_the_operators_ca(tmp_path: Path) -> None:
    """Without the CA it is down, and the operator reads why."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "engine.pem"))
    trusting = EngineSettings(ca_file=str(tmp_path / "ca.pem"))
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(FakeEngine(certificate=tmp_path / "engine.pem"))
        known = await stack.enter_async_context(
            probed(Registry(Settings(upstream_url=engine.url), Metrics()))
        )
        ready, reasons = known.ready()
        assert not ready
        assert "certificate verify failed" in reasons[0]
        assert isinstance(known.undiscovered(), EngineUnavailable)
        await known.replace(Settings(upstream_url=engine.url, engine=trusting))
        await until(lambda: known.ready()[0])
        [found] = known.engines_of(known.models[0])
        assert (await call(found.client))[0] == 200
