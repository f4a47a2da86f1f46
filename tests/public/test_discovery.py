"""Before an engine has listed its models, every name may be one: callers are told to come back."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.callers import Caller, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, free_port, http_client, wait_for


@pytest.fixture(scope="module")
async def engine_port() -> int:
    """Where an engine will be."""
    return free_port()


@pytest.fixture(scope="module")
async def waiting(tmp_path_factory: pytest.TempPathFactory, engine_port: int) -> AsyncIterator[Gateway]:
    """A gateway whose engine is not there yet."""
    folder: Path = tmp_path_factory.mktemp("waiting")
    async with Gateway(folder, GATEWAY_UPSTREAM_URL=f"http://127.0.0.1:{engine_port}/v1/") as running:
        yield running


@pytest.mark.parametrize("model", ["fake-model", "anything", "", None])
@pytest.mark.parametrize("stream", [False, True])
async def test_every_name_is_loading(waiting: Gateway, model: str | None, *, stream: bool) -> None:
    """503 with the time to wait, a stream's request too: never a 404 that a client would believe."""
    answer = await ask(waiting, chat(waiting.key, model=model, stream=stream))
    assert answer.status == 503
    assert (answer.error["code"], answer.error["type"]) == ("engine_loading", "server_error")
    assert answer.headers["retry-after"] == "15"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/fake-model"])
async def test_so_is_the_list(waiting: Gateway, path: str) -> None:
    """An empty list would be taken for the truth by clients that ask once."""
    answer = await ask(waiting, request("GET", path, [("x-api-key", waiting.key)]))
    assert answer.status == 503
    assert answer.error["code"] == "engine_loading"
    assert answer.headers["retry-after"] == "15"


async def test_a_key_comes_first(waiting: Gateway) -> None:
    """Who has none learns nothing, not even that the engine is away."""
    assert (await ask(waiting, chat("wrong"))).status == 401


async def test_the_process_is_well_but_not_ready(waiting: Gateway) -> None:
    """`/healthz` 200, `/readyz` 503 with the reason; the refusals are no faults of ours in the log."""
    assert (await ask(waiting, request("GET", "/healthz"))).status == 200
    async with http_client() as http:
        ready = await http.get(waiting.ops + "/readyz")
    assert ready.status_code == 503
    assert ready.json()["ready"] is False
    assert str(ready.json()["reasons"][0]).startswith("http://127.0.0.1:")
    assert '"exception"' not in waiting.log()
    assert waiting.events("internal_error") == []


async def test_the_models_are_there_as_soon_as_the_engine_is(waiting: Gateway, engine_port: int) -> None:
    """Last in this file: the engine comes, and the next call is served without a restart."""
    engine = FakeEngine(models=["late-model"])
    engine.process.port = engine_port
    async with engine:
        await engine.script(scripts.models("late-model", max_model_len=4096), path="/v1/models")

        async def served() -> bool:
            return (await ask(waiting, chat(waiting.key, model="late-model"))).status == 200

        await wait_for(served, evidence=waiting.log)
        async with Caller(waiting) as caller:
            await caller.send(request("GET", "/v1/models", [("x-api-key", waiting.key)]))
            listed = json.loads((await caller.answer()).body)
    assert [(entry["id"], entry["max_model_len"]) for entry in listed["data"]] == [("late-model", 4096)]
