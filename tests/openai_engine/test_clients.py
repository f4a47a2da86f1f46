"""SDKs work through the gateway before a llama.cpp as they do before a vLLM."""

import asyncio
import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from openai import OpenAI

from tests.openai_engine.calls import ASKED, CALLS, MODEL, QUESTION, STILL, chat
from tests.openai_engine.conftest import Stage
from tests.running import wait_for


def body(name: str, **more: Any) -> dict[str, Any]:
    """The body of a call, for an SDK."""
    found = CALLS[name].body
    assert found is not None
    return {**found, **more}


async def counted(stage: Stage, key: str, kind: str, tokens: int) -> None:
    """Returns once so many tokens are counted for a key: that may be after its answer is read."""

    async def reached() -> bool:
        return await stage.gateway.metric("gateway_tokens_total", key=key, kind=kind) == tokens

    await wait_for(reached, evidence=lambda: f"{kind} tokens of {key} are not {tokens}")


async def test_plain_answer(stage: Stage) -> None:
    """A whole answer arrives with the engine's usage and what llama.cpp adds: its timings."""
    await stage.plays("chat")
    async with stage.sdk() as sdk:
        answer = await sdk.chat.completions.create(**body("chat", model="default"))
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.model_extra is not None
    assert answer.model_extra["timings"]["predicted_n"] == answer.usage.completion_tokens


async def test_bytes_pass(recorded: Stage, http: httpx.AsyncClient) -> None:
    """Plain answers and streams are the engine's bytes; a caller who asked for usage gets all of them."""
    headers = {"x-api-key": recorded.gateway.key}
    for name in ("chat", "completion", "chat_stream", "completion_stream"):
        recording = await recorded.plays(name)
        answer = await http.post(recorded.gateway.url + recording.path, json=recording.body, headers=headers)
        assert answer.content == recording.content, name
        assert await recorded.sent() == recording.body, name


async def test_sync_sdk(stage: Stage) -> None:
    """The synchronous SDK, plain and streamed."""

    def call() -> tuple[str, str]:
        with OpenAI(base_url=f"{stage.gateway.url}/v1", api_key=stage.gateway.key, max_retries=0) as sdk:
            plain = sdk.completions.create(**body("completion"))
            pieces = [
                chunk.choices[0].text
                for chunk in sdk.completions.create(**body("completion_stream", stream_options=None))
            ]
        return plain.choices[0].text, "".join(pieces)

    await stage.plays("completion")
    await stage.plays("completion_stream")
    plain, streamed = await asyncio.to_thread(call)
    assert plain == streamed != ""


async def test_stream_of_a_caller_who_does_not_ask(stage: Stage) -> None:
    """The event with usage alone is taken out, and what it says is counted for the key."""
    recording = await stage.plays("chat_stream")
    made = await stage.gateway.create_key(name="streams")
    async with stage.sdk(made["key"]) as sdk:
        chunks = [chunk async for chunk in await sdk.chat.completions.create(**chat(stream=True))]
    assert all(chunk.choices for chunk in chunks)
    assert not any(chunk.usage for chunk in chunks)
    assert "Paris" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason
    usage = recording.events[-1]["usage"]
    for kind in ("prompt", "completion"):
        await counted(stage, made["id"], kind, usage[f"{kind}_tokens"])


async def test_stream_of_a_caller_who_asks(stage: Stage) -> None:
    """Usage comes last and once."""
    await stage.plays("chat_stream")
    async with stage.sdk() as sdk:
        chunks = [chunk async for chunk in await sdk.chat.completions.create(**chat(**ASKED))]
    assert [bool(chunk.choices) for chunk in chunks].index(False) == len(chunks) - 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


async def test_server_that_tells_no_usage(recorded: Stage) -> None:
    """A stream without usage, though it was asked for, arrives whole."""
    await recorded.plays("chat_stream_without_usage")
    async with recorded.sdk() as sdk:
        chunks = [chunk async for chunk in await sdk.chat.completions.create(**chat(stream=True))]
    assert (await recorded.sent())["stream_options"] == {"include_usage": True}
    assert chunks[-1].choices[0].finish_reason


async def test_stream_that_is_cut(recorded: Stage) -> None:
    """A llama.cpp that is killed in a stream never makes a whole answer of it."""
    recording = await recorded.plays("chat_stream_cut")
    chunks: list[Any] = []

    async def read() -> None:
        async with recorded.sdk() as sdk:
            async for chunk in await sdk.chat.completions.create(**chat(stream=True)):
                chunks.append(chunk)  # noqa: PERF401  # what came before the error counts

    with pytest.raises(openai.APIError) as raised:
        await read()
    assert raised.value.code == "engine_error"
    assert len(chunks) == len(recording.events) > 2


async def test_two_choices(stage: Stage) -> None:
    """`n` within the server's slots is answered."""
    await stage.plays("chat_of_two")
    async with stage.sdk() as sdk:
        answer = await sdk.chat.completions.create(**body("chat_of_two"))
    assert {choice.index for choice in answer.choices} == {0, 1}


async def test_schema(stage: Stage) -> None:
    """A JSON schema in `response_format` is passed on, and held."""
    await stage.plays("schema")
    async with stage.sdk() as sdk:
        answer = await sdk.chat.completions.create(**body("schema"))
    assert json.loads(answer.choices[0].message.content or "")["capital"] in {"Paris", "Rome"}


@pytest.mark.parametrize("streamed", [False, True])
async def test_messages(stage: Stage, *, streamed: bool) -> None:
    """Anthropic's SDK is answered by llama.cpp's own Messages route, and its tokens are counted."""
    await stage.plays("messages_stream" if streamed else "messages")
    made = await stage.gateway.create_key(name="messages")
    more: Any = {"messages": QUESTION, "max_tokens": 24, "extra_body": STILL}
    async with anthropic.AsyncAnthropic(
        base_url=stage.gateway.url, api_key=made["key"], max_retries=0
    ) as sdk:
        if streamed:
            async with sdk.messages.stream(model=MODEL, **more) as stream:
                answer: Any = await stream.get_final_message()
        else:
            answer = await sdk.messages.create(model=MODEL, **more)
    assert "Paris" in answer.content[0].text
    assert answer.usage.output_tokens > 0
    await counted(stage, made["id"], "completion", answer.usage.output_tokens)


@pytest.mark.parametrize("streamed", [False, True])
async def test_responses(stage: Stage, *, streamed: bool) -> None:
    """So is the Responses API, and nothing is stored."""
    await stage.plays("responses_stream" if streamed else "responses")
    wanted: Any = {"model": MODEL, "input": "Say hello.", "max_output_tokens": 16, "temperature": 0}
    async with stage.sdk() as sdk:
        answer: Any = await sdk.responses.create(**wanted, stream=streamed)
        if streamed:
            *_, last = [event async for event in answer]
            answer = last.response
    assert answer.output_text
    assert answer.usage.output_tokens > 0
    if stage.engine is not None:
        assert (await stage.sent())["store"] is False
