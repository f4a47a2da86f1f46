"""The fake engine keeps what its documentation promises: a test tool that lies proves nothing."""

import gzip
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine


@pytest.fixture
async def http(fake_engine: FakeEngine) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client of the fake engine."""
    async with httpx.AsyncClient(base_url=fake_engine.url, trust_env=False, timeout=60) as client:
        yield client


async def chat(http: httpx.AsyncClient, **fields: object) -> httpx.Response:
    """One chat completion."""
    return await http.post("/v1/chat/completions", json={"model": "fake-model", "messages": [], **fields})


async def test_unscripted_it_answers_like_a_small_vllm(http: httpx.AsyncClient) -> None:
    """Health, models, completions with usage, and an error for a model it does not serve."""
    assert (await http.get("/health")).status_code == 200
    assert [model["id"] for model in (await http.get("/v1/models")).json()["data"]] == ["fake-model"]
    answer = (await chat(http, max_tokens=3)).json()
    assert answer["choices"][0]["message"]["content"] == "tok0 tok1 tok2 "
    assert answer["usage"]["completion_tokens"] == 3
    refused = await chat(http, model="other")
    assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")


async def test_unscripted_streams_have_usage_if_it_is_asked_for(http: httpx.AsyncClient) -> None:
    """One event a token, and the last before [DONE] holds the usage."""
    for include_usage in (False, True):
        answer = await chat(http, stream=True, max_tokens=2, stream_options={"include_usage": include_usage})
        *events, done = answer.text.split("\n\n")[:-1]
        assert done == "data: [DONE]"
        documents = [json.loads(event.removeprefix("data: ")) for event in events]
        assert [bool(document["choices"]) for document in documents] == [True] * 4 + [False] * include_usage
        assert ("usage" in documents[-1]) is include_usage


async def test_the_first_script_that_fits_is_played_as_often_as_it_says(
    fake_engine: FakeEngine, http: httpx.AsyncClient
) -> None:
    """Probes are not served scripts for other requests, and are neither listed nor counted."""
    await fake_engine.script(scripts.answer("once"), times=1)
    await fake_engine.script(scripts.answer("pooling"), path="/pooling")
    await fake_engine.script(scripts.answer("then"))
    assert [(await chat(http)).text for _ in range(3)] == ["once", "then", "then"]
    assert (await http.get("/health")).text == ""
    assert (await http.post("/tokenize")).text == "then"
    assert [request.target for request in await fake_engine.requests()].count("/health") == 0
    assert (await fake_engine.stats())["requests"] == 4
    assert len(await fake_engine.requests("/health")) == 1


async def test_what_is_not_so_in_time_is_said_with_the_counters(fake_engine: FakeEngine) -> None:
    """So that whoever waits for it can show them."""
    reached, counters = await fake_engine.reaches(0.05, aborted=1)
    assert not reached
    assert counters["aborted"] == 0


async def test_it_compresses_if_the_request_accepts_that(
    fake_engine: FakeEngine, http: httpx.AsyncClient
) -> None:
    """As an engine behind a compressing server does."""
    await fake_engine.script([{"reply": "gzip"}])
    for accepted, encoded in (("gzip", True), ("identity", False)):
        async with http.stream("POST", "/v1/completions", headers={"accept-encoding": accepted}) as answer:
            raw = b"".join([part async for part in answer.aiter_raw()])
        assert ("content-encoding" in answer.headers) is encoded
        assert (gzip.decompress(raw) if encoded else raw).endswith(b"data: [DONE]\n\n")


async def test_it_shows_requests_as_they_came(fake_engine: FakeEngine, http: httpx.AsyncClient) -> None:
    """Names in their case, in order, the body whole; to the caller too, if it is told to echo."""
    await fake_engine.script([{"reply": "echo"}])
    echoed = (await http.post("/v1/x?y=1", content=b"body", headers={"X-One": "1"})).json()
    [seen] = await fake_engine.requests()
    assert (seen.method, seen.target, seen.body) == ("POST", "/v1/x?y=1", b"body")
    assert ("X-One", "1") in seen.headers
    assert [list(pair) for pair in seen.headers] == echoed["headers"]


async def test_a_killed_engine_starts_again_on_its_port() -> None:
    """As an engine that crashed and was restarted."""
    async with FakeEngine(models=["m"]) as engine:
        url = engine.url
        engine.kill()
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            with pytest.raises(httpx.ConnectError):
                await http.get(url + "/health")
            await engine.start()
            assert engine.url == url
            assert (await http.get(url + "/health")).status_code == 200
