"""Loading the configuration while running: from the next call on all of it holds, or none of it."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.callers import Answer, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, free_port, wait_for

BROKEN = '[[models]]\nid = "m"\nengines = "no list"\n[server]\ndrain_seconds = -1\n'


class File:
    """The configuration of one running gateway, as its operator edits it."""

    def __init__(self, gateway: Gateway, engine_url: str) -> None:
        self.gateway = gateway
        self.engine_url = engine_url

    def write(self, *models: str, more: str = "", defaults: str = "") -> None:
        """These models on the fake engine, all with these defaults, and `more` before them."""
        same = f'engines = ["{self.engine_url}"]\nengine_model = "fake-model"\n{defaults}\n'
        tables = [f'[[models]]\nid = "{model}"\n{same}' for model in models]
        self.gateway.config_file.write_text(more + "\n" + "\n".join(tables))

    async def hang_up(self, event: str) -> dict[str, Any]:
        """SIGHUP; the log line that says what came of it."""
        before = len(self.gateway.events(event))
        self.gateway.process.send_signal(signal.SIGHUP)

        async def said() -> bool:
            return len(self.gateway.events(event)) > before

        await wait_for(said, evidence=self.gateway.log)
        return self.gateway.events(event)[-1]

    async def status(self, model: str, **fields: Any) -> int:
        """What a call of this model gets."""
        return (await ask(self.gateway, chat(self.gateway.key, model=model, **fields))).status

    def call(self, model: str) -> asyncio.Task[Answer]:
        """A call of this model that is under way."""
        return asyncio.create_task(ask(self.gateway, chat(self.gateway.key, model=model)))

    async def models(self) -> list[str]:
        """What the list of models holds."""
        answer = await ask(self.gateway, request("GET", "/v1/models", [("x-api-key", self.gateway.key)]))
        return [entry["id"] for entry in json.loads(answer.body)["data"]]


@pytest.fixture(scope="module")
async def editable(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway with a file of its own."""
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    config = f'[[models]]\nid = "first"\nengines = ["{url}"]\nengine_model = "fake-model"\n'
    async with Gateway(tmp_path_factory.mktemp("editable"), config=config) as running:
        yield running


@pytest.fixture
async def file(editable: Gateway, fake_engine: FakeEngine) -> File:
    """Its file, with one model in it, loaded."""
    file = File(editable, fake_engine.url)
    file.write("first")
    await file.hang_up("configuration_reloaded")
    return file


async def test_sighup_changes_the_models_for_the_next_call(file: File, fake_engine: FakeEngine) -> None:
    """New ones are there, removed ones are not, changed defaults hold; a call that runs is not disturbed."""
    assert await file.models() == ["first"]
    await fake_engine.script(scripts.gated("old", scripts.chat()), times=1)
    running = file.call("first")
    await fake_engine.wait(running=1)
    file.write("second", "third", defaults="[models.defaults]\ntemperature = 0.25")
    assert (await file.hang_up("configuration_reloaded"))["needs_restart"] == []
    assert await file.models() == ["second", "third"]
    assert await file.status("first") == 404
    assert await file.status("second") == 200
    assert (await fake_engine.requests())[-1].json()["temperature"] == 0.25
    await fake_engine.open_gate("old")
    assert (await running).status == 200


async def test_the_admin_api_does_the_same(file: File) -> None:
    """And answers what came of it."""
    file.write("second")
    answer = await file.gateway.admin("POST", "/admin/reload")
    assert answer.json() == {"reloaded": True, "needs_restart": []}
    assert await file.models() == ["second"]


async def test_a_broken_file_changes_nothing_and_is_explained(file: File) -> None:
    """In the log after SIGHUP, in the answer of the admin API; a file that is gone, too."""
    file.gateway.config_file.write_text(BROKEN)
    problems = (await file.hang_up("configuration_kept"))["problems"]
    assert any("engines" in problem for problem in problems)
    assert any("drain_seconds" in problem for problem in problems)
    answer = await file.gateway.admin("POST", "/admin/reload")
    assert answer.status_code == 400
    assert "drain_seconds" in answer.json()["error"]["message"]
    file.gateway.config_file.unlink()
    assert (await file.gateway.admin("POST", "/admin/reload")).status_code == 400
    assert await file.models() == ["first"]
    assert await file.status("first") == 200


async def test_limits_and_bounds_hold_from_the_next_call_on(file: File, fake_engine: FakeEngine) -> None:
    """Of keys that have none of their own, of bodies, of what is asked for; and what is logged."""
    more = (
        "[limits.default]\nmax_parallel = 1\n[server]\nmax_body_bytes = 1000\ntrusted_proxies = []\n"
        '[policy]\nmax_n = 2\n[log]\nrequests = "all"\n'
    )
    file.write("first", more=more)
    await file.hang_up("configuration_reloaded")
    assert await file.status("first", padding="x" * 1000) == 413
    assert await file.status("first", n=3) == 400
    await fake_engine.script(scripts.gated("one", scripts.chat()), times=1)
    running = file.call("first")
    await fake_engine.wait(running=1)
    assert await file.status("first") == 429
    await fake_engine.open_gate("one")
    assert (await running).status == 200
    answer = await ask(file.gateway, request("GET", "/healthz", [("x-forwarded-for", "203.0.113.9")]))
    assert (await file.gateway.request_line(answer.headers["x-request-id"]))["address"] == "127.0.0.1"


async def test_time_outs_hold_from_the_next_call_on(file: File, fake_engine: FakeEngine) -> None:
    """The engine's, and the heartbeats."""
    file.write("first", more="[engine]\nfirst_byte_timeout_seconds = 0.3\n")
    await file.hang_up("configuration_reloaded")
    await fake_engine.script([{"hang": True}])
    assert await file.status("first") == 504


async def test_an_engine_that_is_away_for_longer_than_a_start_takes_is_unavailable(file: File) -> None:
    """Callers are told to come back sooner than while it loads, and that somebody should look."""
    file.engine_url = f"http://127.0.0.1:{free_port()}"
    file.write("first", more="[engine]\nstart_seconds = 0\n")
    await file.hang_up("configuration_reloaded")
    answer = await file.call("first")
    assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
    assert answer.headers["retry-after"] == "5"


async def test_what_needs_a_restart_is_named_each_time_until_it_was_had(file: File) -> None:
    """What was changed beside it holds."""
    more = "port = 1\n[server]\nclient_stall_seconds = 7\n"
    file.write("second", more=more)
    for _ in range(2):
        answer = await file.gateway.admin("POST", "/admin/reload")
        assert answer.json()["needs_restart"] == ["server.client_stall_seconds"]
    assert await file.models() == ["second"]


async def test_reloads_in_a_row_and_at_once_end_with_the_last_file(file: File) -> None:
    """One is done after the other."""
    for number in range(20):
        file.write(f"model-{number}")
        file.gateway.process.send_signal(signal.SIGHUP)

    async def last() -> bool:
        return await file.models() == ["model-19"]

    await wait_for(last, evidence=file.gateway.log)


async def test_an_engine_that_is_named_otherwise_is_found(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """`upstream_url` in the file: the models are those of the engine that it names now."""
    async with (
        FakeEngine(models=["elsewhere"]) as other,
        Gateway(tmp_path, config=f'upstream_url = "{fake_engine.url}"\n') as gateway,
    ):
        file = File(gateway, "")
        assert await file.models() == ["fake-model"]
        gateway.config_file.write_text(f'upstream_url = "{other.url}/v1"\n')
        assert (await file.hang_up("configuration_reloaded"))["needs_restart"] == []

        async def found() -> bool:
            return await file.status("elsewhere") == 200

        await wait_for(found, evidence=gateway.log)
