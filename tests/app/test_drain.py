"""Told to stop: new calls go elsewhere, running ones may end, and what does not end is told so."""

import asyncio
import signal
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.callers import Answer, Caller, ask, chat, request
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway, wait_for
from tests.usage_rows import rows

HEALTH = request("GET", "/healthz")
DRAIN_SECONDS = {"patient": 600, "short": 0.5, "none": 0, "twice": 600}
END_SECONDS = 60


@pytest.fixture(scope="module")
async def started(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Gateway]]:
    """A gateway for each test here, since none outlives its test; all started at once, which is quicker."""
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    gateways = {
        name: Gateway(
            tmp_path_factory.mktemp(name),
            GATEWAY_UPSTREAM_URL=url,
            GATEWAY_SERVER__DRAIN_SECONDS=str(seconds),
            GATEWAY_SERVER__CLIENT_STALL_SECONDS="600",
        )
        for name, seconds in DRAIN_SECONDS.items()
    }
    await asyncio.gather(*(gateway.__aenter__() for gateway in gateways.values()))
    yield gateways
    await asyncio.gather(*(gateway.__aexit__(None, None, None) for gateway in gateways.values()))


@pytest.fixture
async def stopping(
    request: pytest.FixtureRequest, started: dict[str, Gateway], fake_engine: FakeEngine
) -> Gateway:
    """The test's own gateway, before an engine as fresh from the start."""
    assert fake_engine.process.alive
    return started[request.param]


async def told_to_stop(gateway: Gateway) -> None:
    """SIGTERM, and it has been heard."""
    gateway.process.send_signal(signal.SIGTERM)

    async def draining() -> bool:
        return bool(gateway.events("draining"))

    await wait_for(draining, evidence=gateway.log)


def assert_shutting_down(answer: Answer) -> None:
    assert answer.status == 503
    assert (answer.error["code"], answer.error["type"]) == ("shutting_down", "server_error")
    assert answer.headers["retry-after"] == "5"
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("stopping", ["patient"], indirect=True)
async def test_running_calls_end_while_new_ones_are_sent_away(
    stopping: Gateway, fake_engine: FakeEngine, http: httpx.AsyncClient
) -> None:
    """It listens on, so that callers get an answer, as every other one told of their limits and booked."""
    await fake_engine.script(scripts.stream(2, gate="next"), times=1)
    await fake_engine.script(scripts.gated("plain", scripts.chat()), times=1)
    limited = await stopping.create_key(name="limited", rpm=9)
    async with Caller(stopping) as kept:
        await kept.send(HEALTH)
        assert (await kept.answer()).status == 200
        streamed = asyncio.create_task(ask(stopping, chat(stopping.key, stream=True)))
        await fake_engine.wait(running=1)
        plain = asyncio.create_task(ask(stopping, chat(stopping.key)))
        await fake_engine.wait(running=2)
        await told_to_stop(stopping)
        await kept.send(chat(stopping.key))
        assert_shutting_down(await kept.answer())
        assert await kept.rest() == b""
    for data in (
        chat(stopping.key),
        chat("wrong"),
        request("GET", "/v1/models", [("x-api-key", stopping.key)]),
    ):
        assert_shutting_down(await ask(stopping, data))
    refused = await ask(stopping, chat(limited["key"]))
    assert_shutting_down(refused)
    assert refused.headers["x-ratelimit-remaining-requests"] == "9"
    assert (await ask(stopping, HEALTH)).status == 200
    ready = await http.get(stopping.ops + "/readyz")
    assert (ready.status_code, ready.json()["reasons"]) == (503, ["the gateway is shutting down"])
    assert (await http.get(stopping.ops + "/metrics")).status_code == 200
    await fake_engine.open_gate("next", 2)
    assert (await streamed).body.endswith(b"data: [DONE]\n\n")
    assert stopping.process.returncode is None
    await fake_engine.open_gate("plain")
    assert (await plain).status == 200
    assert await asyncio.wait_for(stopping.process.wait(), END_SECONDS) == 0
    assert len(await fake_engine.requests()) == 2
    [row] = rows(stopping, limited["id"])
    assert (row["status"], row["reason"]) == (503, "shutting_down")
    assert stopping.log().splitlines()[-1].count('"event":"stopped"') == 1


@pytest.mark.parametrize("stopping", ["short"], indirect=True)
async def test_what_has_not_ended_in_time_is_told_so(stopping: Gateway, fake_engine: FakeEngine) -> None:
    """One error event and no [DONE] in a body that ends properly; 503 where nothing was sent yet."""
    await fake_engine.script(scripts.stream(2, end="hang"), times=1)
    await fake_engine.script([{"hang": True}])
    streamed = asyncio.create_task(ask(stopping, chat(stopping.key, stream=True)))
    await fake_engine.wait(running=1)
    waiting = [
        asyncio.create_task(ask(stopping, chat(stopping.key, stream=stream))) for stream in (False, True)
    ]
    await fake_engine.wait(running=3)
    await told_to_stop(stopping)
    *_, last = (await streamed).body.removesuffix(b"\n\n").split(b"\n\n")
    assert last.startswith(b'data: {"error":{')
    assert b'"shutting_down"' in last
    assert (await streamed).body.count(b'"error"') == 1
    assert b"[DONE]" not in (await streamed).body
    for call in waiting:
        assert (await call).error["code"] == "shutting_down"
        assert (await call).headers["retry-after"] == "5"
    assert await asyncio.wait_for(stopping.process.wait(), END_SECONDS) == 0
    await fake_engine.wait(running=0, aborted=3)


@pytest.mark.parametrize("stopping", ["none"], indirect=True)
async def test_callers_who_never_look_do_not_hold_it_up(stopping: Gateway, fake_engine: FakeEngine) -> None:
    """A stream that nobody reads, a half of a head, a half of a body, an idle connection."""
    event = answers.chunk(b"data: {}\n\n" * 6_000)
    endless = {**scripts.send(event), "repeat": 1000}  # more than all buffers on the way hold
    await fake_engine.script([scripts.send(answers.stream_head()), endless], times=1)
    beginnings = [
        chat(stopping.key, stream=True),
        b"GET /heal",
        chat(stopping.key)[:-9],
        chat("wrong")[:-9],
        b"",
    ]
    callers = [Caller(stopping) for _ in beginnings]
    for caller, data in zip(callers, beginnings, strict=True):
        await caller.__aenter__()
        await caller.send(data)
    await fake_engine.wait(running=1)
    assert await asyncio.wait_for(stopping.stop(), END_SECONDS) == 0
    assert '"exception"' not in stopping.log()
    for caller in callers:
        await caller.__aexit__(None, None, None)


@pytest.mark.parametrize("stopping", ["twice"], indirect=True)
async def test_a_second_signal_ends_it_at_once(stopping: Gateway, fake_engine: FakeEngine) -> None:
    """Whatever runs: the operator has said it twice."""
    await fake_engine.script([{"hang": True}])
    call = asyncio.create_task(ask(stopping, chat(stopping.key)))
    await fake_engine.wait(running=1)
    await told_to_stop(stopping)
    assert await asyncio.wait_for(stopping.stop(signal.SIGINT), END_SECONDS) == -signal.SIGINT
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await call
    await fake_engine.wait(aborted=1)
