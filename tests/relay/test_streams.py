"""Streams pass byte for byte, at the caller's pace, and are never silent for long."""

import httpx
import pytest
from openai import AsyncOpenAI

from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.relay.calls import CALL, MODEL, raw, stream_text
from tests.running import Gateway

pytestmark = pytest.mark.usefixtures("leaves_nothing_behind")


async def test_a_silent_stream_hears_heartbeats_that_the_sdk_ignores(
    gateway: Gateway, client: AsyncOpenAI, fake_engine: FakeEngine
) -> None:
    """Comment lines between events, none inside one, and the text is the same."""
    slow = [*scripts.stream(1)[:1], {"sleep": 0.9}, *scripts.stream(1)[1:]]
    await fake_engine.script(slow)
    body = (await raw(gateway, stream=True)).text
    assert ": heartbeat\n\n" in body
    assert all(event.startswith(("data: ", ": heartbeat")) for event in body.strip().split("\n\n"))
    assert "".join([piece async for piece in stream_text(client)])


async def test_no_heartbeat_follows_an_event_id(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """SDKs take a comment after an id for an empty event and fail to parse it."""
    first, *rest = answers.events(MODEL, 1)
    start = [scripts.send(answers.stream_head() + answers.chunk(b"id: 1\n" + first)), {"sleep": 0.9}]
    await fake_engine.script(
        [*start, *scripts.chunks([*rest, answers.DONE]), scripts.send(answers.chunk(b""))]
    )
    assert "heartbeat" not in (await raw(gateway, stream=True)).text


@pytest.mark.parametrize("split", [1, 7, 0])
async def test_any_chunking_arrives_byte_for_byte(
    gateway: Gateway, fake_engine: FakeEngine, split: int
) -> None:
    """What the engine wrote is what the caller gets, usage event and all, if it was asked for."""
    events = [*answers.events(MODEL, 5, with_usage=True), answers.DONE]
    await fake_engine.script(scripts.events(events, split=split))
    answer = await raw(gateway, stream=True, stream_options={"include_usage": True})
    assert answer.content == b"".join(events)


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
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        headers = {"authorization": f"Bearer {gateway.key}"}
        url = f"{gateway.url}/v1/chat/completions"
        async with http.stream("POST", url, headers=headers, json={**CALL, "stream": True}) as answer:
            assert answer.status_code == 200
            await fake_engine.wait(running=1)
            grown = await gateway.metric("process_resident_memory_bytes") - before
            assert (await fake_engine.stats())["answered"] == 0
    assert grown < 20_000_000
    await fake_engine.wait(running=0)
