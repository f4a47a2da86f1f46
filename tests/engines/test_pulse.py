"""An engine that hangs behind a `/health` that says it is well is found out, and no other is suspected."""

from typing import Literal

import httpx
import pytest

from gateway.engines import Client, Registry
from gateway.engines.pulse import SILENT_SECONDS, Pulse
from gateway.engines.unwell import Unwell
from gateway.metrics import Metrics
from gateway.settings import Model, Settings
from tests.engines.calls import HEADERS, PATH, call, client_of, probed, until
from tests.engines.loops import on_each_loop
from tests.fake_engine.handle import FakeEngine

ONE_TOKEN = "/v1/completions"
HANG = [{"hang": True}]


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def look(
    pulse: Pulse, engine: FakeEngine, client: Client, kind: Literal["vllm", "openai"] = "vllm"
) -> None:
    """One check of this engine, which serves one model under its own name."""
    model = Model(id="m", engine_model="fake-model", engines=(engine.url,), kind=kind)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        await pulse.check(http, engine.url, client, (model,))


@on_each_loop
async def test_an_engine_that_hangs_is_unwell_until_it_answers_again(engine: FakeEngine) -> None:
    """Callers wait, nothing comes for a minute, and one token of our own does not come either."""
    clock = Clock()
    pulse = Pulse(clock, answer_seconds=0.2)
    await engine.script(HANG, times=2)
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, b"{}")
        await look(pulse, engine, client)
        clock.now += SILENT_SECONDS
        with pytest.raises(Unwell, match="restart it"):
            await look(pulse, engine, client)
        exchange.close()  # the caller has given up: that alone makes nothing well
        await engine.script(HANG, path=ONE_TOKEN, times=1)
        with pytest.raises(Unwell, match="did not come within"):
            await look(pulse, engine, client)
        pulse._answer_seconds = 60  # this one is answered
        await look(pulse, engine, client)
        assert len(await engine.requests(ONE_TOKEN)) == 3
        await look(pulse, engine, client)
        assert len(await engine.requests(ONE_TOKEN)) == 3, "one that works and is idle is not asked"


@on_each_loop
async def test_a_long_answer_is_no_hang(engine: FakeEngine) -> None:
    """Silence of a minute is looked into with one token, once a minute, and that one is enough."""
    clock = Clock()
    pulse = Pulse(clock)
    await engine.script(HANG, path=PATH.decode())
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, b"{}")
        await look(pulse, engine, client)
        for _ in range(6):
            clock.now += SILENT_SECONDS / 3
            await look(pulse, engine, client)
        exchange.close()
    asked = await engine.requests(ONE_TOKEN)
    assert len(asked) == 2
    assert asked[0].json() == {"model": "fake-model", "prompt": "1", "max_tokens": 1}


@on_each_loop
async def test_nobody_is_asked_while_bytes_come_or_nobody_waits(engine: FakeEngine) -> None:
    """An idle engine and a busy one cost nothing."""
    clock = Clock()
    pulse = Pulse(clock)
    async with client_of(engine) as client:
        for _ in range(3):
            clock.now += SILENT_SECONDS
            await look(pulse, engine, client)
        stream = await client.send(b"POST", PATH, HEADERS, b'{"model": "fake-model", "messages": []}')
        for _ in range(3):
            clock.now += SILENT_SECONDS
            await call(client, b'{"model": "fake-model", "messages": []}')
            await look(pulse, engine, client)
        stream.close()
    assert await engine.requests(ONE_TOKEN) == []


@on_each_loop
async def test_an_engine_with_a_queue_of_its_own_kind_is_not_asked(engine: FakeEngine) -> None:
    """Elsewhere one token may have to wait for a long answer before it."""
    clock = Clock()
    pulse = Pulse(clock)
    await engine.script(HANG)
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, b"{}")
        await look(pulse, engine, client, kind="openai")
        clock.now += SILENT_SECONDS
        await look(pulse, engine, client, kind="openai")
        exchange.close()
    assert await engine.requests(ONE_TOKEN) == []


@on_each_loop
async def test_readiness_and_the_metric_say_so(engine: FakeEngine) -> None:
    """What the alert on an engine that is down looks at, and what /readyz tells the operator."""
    clock = Clock()
    settings = Settings(models=(Model(id="m", engine_model="fake-model", engines=(engine.url,)),))
    metrics = Metrics()
    await engine.script(HANG, path=PATH.decode())
    await engine.script([{"reset": True}], path=ONE_TOKEN)
    async with probed(Registry(settings, metrics, clock)) as known:
        [found] = known.engines_of(settings.models[0])
        exchange = await found.client.send(b"POST", PATH, HEADERS, b"{}")
        clock.now += SILENT_SECONDS
        found.note_failure()
        await until(lambda: not known.ready()[0])
        assert metrics.registry.get_sample_value("gateway_engine_up", {"engine": engine.url}) == 0
        exchange.close()
