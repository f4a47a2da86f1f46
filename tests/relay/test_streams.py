"""Streams pass byte for byte, at the caller's pace, and are never silent for long."""

from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.prompts import HELLO
from tests.relay.calls import CALL, MODEL, called, raw, stream_text
from tests.relay.conftest import sdk
from tests.running import Gateway, wait_for

pytestmark = pytest.mark.usefixtures("leaves_nothing_behind")


async def test_a_silent_stream_hears_heartbeats_that_the_sdk_ignores(
    talkative: Gateway, fake_engine: FakeEngine
) -> None:
    """Comment lines between events, none inside one, and the text is the same."""
    slow = [*scripts.stream(1)[:1], {"sleep": 0.9}, *scripts.stream(1)[1:]]
    await fake_engine.script(slow)
    body = (await raw(talkative, stream=True)).text
    assert ": heartbeat\n\n" in body
    assert all(event.startswith(("data: ", ": heartbeat")) for event in body.strip().split("\n\n"))
    async with sdk(talkative) as client:
        assert "".join([piece async for piece in stream_text(client)])


async def test_no_heartbeat_follows_an_event_id(talkative: Gateway, fake_engine: FakeEngine) -> None:
    """SDKs take a comment after an id for an empty event and fail to parse it."""
    first, *rest = answers.events(MODEL, 1)
    start = [scripts.send(answers.stream_head() + answers.chunk(b"id: 1\n" + first)), {"sleep": 0.9}]
    await fake_engine.script(
        [*start, *scripts.chunks([*rest, answers.DONE]), scripts.send(answers.chunk(b""))]
    )
    assert "heartbeat" not in (await raw(talkative, stream=True)).text


@pytest.mark.parametrize("split", [1, 7, 0])
async def test_any_chunking_arrives_byte_for_byte(
    gateway: Gateway, fake_engine: FakeEngine, split: int
) -> None:
    """What the engine wrote is what the caller gets, usage event and all, if it was asked for."""
    events = [*answers.events(MODEL, 5, with_usage=True), answers.DONE]
    await fake_engine.script(scripts.events(events, split=split))
    answer = await raw(gateway, stream=True, stream_options={"include_usage": True})
    assert answer.content == b"".join(events)


@pytest.mark.parametrize(
    "options",
    [{}, {"stream_options": None}, {"stream_options": {}}, {"stream_options": {"include_usage": False}}],
)
async def test_who_did_not_ask_for_usage_never_sees_a_chunk_without_choices(
    gateway: Gateway, client: AsyncOpenAI, options: dict[str, Any]
) -> None:
    """The usual loop takes `choices[0]` of each; the tokens are counted all the same."""
    before = await gateway.metric("gateway_tokens_total", kind="completion")
    stream = await client.chat.completions.create(
        model=MODEL, messages=HELLO, stream=True, max_tokens=3, extra_body=options
    )
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "tok0 tok1 tok2 "

    async def counted() -> bool:
        return await gateway.metric("gateway_tokens_total", kind="completion") == before + 3

    await wait_for(counted)


async def test_who_asked_for_usage_sees_it_once(client: AsyncOpenAI) -> None:
    """In the last chunk, whose `choices` is empty."""
    stream = await client.chat.completions.create(
        model=MODEL, messages=HELLO, stream=True, max_tokens=3, stream_options={"include_usage": True}
    )
    *chunks, last = [chunk async for chunk in stream]
    assert all(chunk.usage is None for chunk in chunks)
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 3


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
async def test_a_stream_is_never_compressed(gateway: Gateway, fake_engine: FakeEngine, accepted: str) -> None:
    """The engine is asked for it as it is, whatever the caller takes."""
    await fake_engine.script([{"reply": "gzip"}])
    answer = await called(gateway, "/v1/chat/completions", accept=accepted, stream=True)
    assert "content-encoding" not in answer.headers
    assert answer.content.endswith(b"data: [DONE]\n\n")


async def test_what_comes_before_the_first_token_is_none(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Comments, pings and retry times of an engine pass, and no time to a first token is measured by them."""
    tokens, requests = "gateway_time_to_first_token_seconds_count", "gateway_requests_total"
    before = await gateway.metric(tokens), await gateway.metric(requests, route="/v1/chat/completions")
    idle = [b": hello\n\n", b"event: ping\ndata: {}\n\n", b"retry: 3000\n\n"]
    await fake_engine.script(scripts.events([*idle, answers.DONE]), times=1)
    assert (await raw(gateway, stream=True)).content == b"".join([*idle, answers.DONE])
    await fake_engine.script(scripts.events([*idle, *answers.events(MODEL, 1), answers.DONE]))
    await raw(gateway, stream=True)

    async def both_counted() -> bool:
        return await gateway.metric(requests, route="/v1/chat/completions") == before[1] + 2

    await wait_for(both_counted)
    assert await gateway.metric(tokens) == before[0] + 1


async def test_headers_of_a_stream_keep_proxies_from_buffering_it(gateway: Gateway) -> None:
    """And none of the engine's framing is left in them."""
    answer = await raw(gateway, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers


async def test_a_slow_reader_stops_the_engine_instead_of_filling_memory(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """Back-pressure goes the whole way: of 64 MB hardly anything is read while the caller sleeps."""
    big = answers.events(MODEL, 1)[1].replace(b'"content"', b'"padding": "' + b"x" * 65_000 + b'", "content"')
    await fake_engine.script([*scripts.stream(1)[:1], *[scripts.send(answers.chunk(big))] * 1000])
    before = await gateway.metric("process_resident_memory_bytes")
    async with httpx.AsyncClient(timeout=120, trust_env=False) as http:
        headers = {"authorization": f"Bearer {gateway.key}"}
        url = f"{gateway.url}/v1/chat/completions"
        async with http.stream("POST", url, headers=headers, json={**CALL, "stream": True}) as answer:
            assert answer.status_code == 200
            await fake_engine.wait(running=1)
            grown = await gateway.metric("process_resident_memory_bytes") - before
            assert (await fake_engine.stats())["answered"] == 0
    assert grown < 20_000_000
    await fake_engine.wait(running=0)
