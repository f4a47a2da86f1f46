"""An engine of kind "openai" is watched and fed as what it is: not sent what vLLM alone knows."""

from pathlib import Path

import httpx

from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.openai_engine import recordings
from tests.openai_engine.calls import MODEL, chat
from tests.openai_engine.conftest import Stage, play
from tests.running import Gateway, wait_for

OF_VLLM = {"structured_outputs": {"choice": ["a"]}, "return_token_ids": True, "truncate_prompt_tokens": 8}
OF_MANY = {"min_p": 0.1, "top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}


async def test_fields_of_vllm_alone(stage: Stage) -> None:
    """They are not sent, and no salt is added; what other servers know, too, is."""
    await stage.plays("chat")
    async with stage.sdk() as sdk:
        answer = await sdk.chat.completions.create(**chat(), extra_body={**OF_VLLM, **OF_MANY})
    assert answer.choices
    if stage.engine is not None:
        assert await stage.sent() == {**chat(), **OF_MANY}


async def test_models(stage: Stage, http: httpx.AsyncClient) -> None:
    """The gateway lists the model under its id and is ready."""
    async with stage.sdk() as sdk:
        assert MODEL in [model.id async for model in await sdk.models.list()]

    async def ready() -> bool:
        return (await http.get(f"{stage.gateway.ops}/readyz")).status_code == 200

    await wait_for(ready, evidence=stage.gateway.log)


async def test_discovery(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """While llama.cpp loads, it is loading; then its model is found, and taken for what it is."""
    async with FakeEngine(models=[MODEL]) as engine:
        await play(engine, recordings.load("loading"))
        health = scripts.send(recordings.load("health").response)
        await engine.script([{"gate": "loaded"}, health], path="/health")
        await play(engine, recordings.load("models"), times=None)
        await play(engine, recordings.load("chat"))
        async with Gateway(tmp_path, GATEWAY_UPSTREAM_URL=engine.url) as gateway:
            headers = {"x-api-key": gateway.key}

            async def call() -> httpx.Response:
                return await http.post(f"{gateway.url}/v1/chat/completions", json=chat(), headers=headers)

            async def ready() -> bool:
                return (await http.get(f"{gateway.ops}/readyz")).status_code == 200

            refused = await call()
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_loading")
            assert await engine.requests() == []

            await engine.open_gate("loaded", times=1_000)
            await wait_for(ready, evidence=gateway.log)
            assert (await call()).content == recordings.load("chat").content
            [seen] = await engine.requests()
            assert seen.json() == chat()
