"""What fails is told, and comes back by itself: the gateway, the engine, Docker. Keys stay as they were."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.prompts import CAPITAL, COUNT, HELLO
from tests.running import wait_for
from tests.stack.stack import Stack, own_address
from tests.stack.webhook import Webhook

BACK_SECONDS = 240.0
ENGINE_SECONDS = 600.0
ALERT_SECONDS = 300.0

# Ends the process that computes, as the kernel does when memory runs out. Runs in vLLM's container.
END_ENGINE = """
import os, pathlib, signal
for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if command.read_bytes().startswith(b"VLLM::EngineCore"):
        os.kill(int(command.parent.name), signal.SIGKILL)
        print(command.parent.name)
"""


async def answered(stack: Stack) -> httpx.Response:
    """The answer to a short call, whatever it is."""
    body = {"model": "default", "messages": CAPITAL, "max_tokens": 8, "temperature": 0}
    async with stack.http() as http:
        return await http.post(
            "/v1/chat/completions", json=body, headers={"authorization": f"Bearer {stack.key}"}
        )


async def works(stack: Stack) -> bool:
    """Whether a call gets its answer."""
    try:
        return (await answered(stack)).status_code == 200
    except httpx.TransportError:
        return False


async def keys(stack: Stack) -> list[dict[str, object]]:
    """All keys as the gateway has them, but for when each was last used."""
    listed: list[dict[str, object]] = json.loads(
        await stack.compose("exec", "-T", "gateway", "gateway", "keys", "list", "--json")
    )
    return [{name: value for name, value in key.items() if name != "last_used_at"} for key in listed]


@pytest.fixture(scope="module")
async def webhook(stack: Stack) -> AsyncIterator[Webhook]:
    """Where ALERT_URL leads."""
    async with Webhook(own_address(), stack.alert_port) as webhook:
        yield webhook


async def test_alert_test_reaches_the_operator(stack: Stack, webhook: Webhook) -> None:
    """`make alert-test` says that it was taken, and it was."""
    await stack.make("alert-test")
    assert webhook.firing("TestAlert")


async def test_an_engine_that_dies_is_told_and_comes_back(stack: Stack, webhook: Webhook) -> None:
    """Callers get 503 with a time to come back, the operator gets an alert, and Docker starts it anew."""
    assert (await stack.containers())["vllm"].restarts == 0
    await wait_for(lambda: _seen_well(stack), ALERT_SECONDS)
    assert await stack.inside("vllm", END_ENGINE)

    refusals: list[httpx.Response] = []

    async def refused() -> bool:
        refusals.append(await answered(stack))
        return refusals[-1].status_code == 503

    await wait_for(refused, BACK_SECONDS)
    answer = refusals[-1]
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["code"] in {"engine_loading", "engine_unavailable"}
    await _alert_is_told(stack, webhook)
    await wait_for(lambda: works(stack), ENGINE_SECONDS)
    assert (await stack.containers())["vllm"].restarts == 1


async def _seen_well(stack: Stack) -> bool:
    """Whether the alert will take the engine for gone rather than for loading: see the rule's comment."""
    return bool(
        await stack.query(
            "max_over_time(timestamp(gateway_engine_up == 1)[30m:15s])"
            ' > on (instance) group_left () (process_start_time_seconds{job="gateway"} + 15)'
        )
    )


async def _alert_is_told(stack: Stack, webhook: Webhook) -> None:
    """The engine is held up while it loads: on a fast machine it would be well before anybody is told."""

    async def told() -> bool:
        return webhook.firing("EngineDown")

    async def started_again() -> bool:
        engine = (await stack.containers())["vllm"]
        return engine.restarts == 1 and engine.state == "running"

    await wait_for(started_again, BACK_SECONDS)
    await stack.compose("pause", "vllm")
    try:
        await wait_for(told, ALERT_SECONDS)
    finally:
        await stack.compose("unpause", "vllm")


async def test_a_gateway_that_is_killed_during_a_stream_returns_with_all_keys(stack: Stack) -> None:
    """The stream ends without looking complete; the next call works, with the same key and no hand moved."""
    made = await stack.create_key("outlives-the-gateway")
    before = await keys(stack)
    lines: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        await _read_and_kill_gateway(stack, made, lines)
    assert lines
    assert "data: [DONE]" not in lines
    await wait_for(lambda: works(stack), BACK_SECONDS)
    assert await keys(stack) == before
    async with stack.sdk(made) as sdk:
        await sdk.chat.completions.create(model="default", messages=HELLO, max_tokens=2)


async def _read_and_kill_gateway(stack: Stack, key: str, lines: list[str]) -> None:
    # Long enough to be under way still, however busy the machine is.
    body = {"model": "default", "messages": COUNT, "max_tokens": 4000, "ignore_eos": True, "stream": True}
    headers = {"authorization": f"Bearer {key}"}
    async with (
        stack.http() as http,
        http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as stream,
    ):
        async for line in stream.aiter_lines():
            if not lines:
                await stack.kill("gateway")
            lines.append(line)


async def test_all_is_back_after_docker_was_stopped_and_started(stack: Stack) -> None:
    """As after a restart of the machine: every service, the model, and the key."""
    services = set(await stack.containers())
    await stack.engine.stop()
    await stack.engine.start()
    assert set(await stack.containers()) == services
    await wait_for(stack.healthy, ENGINE_SECONDS)
    assert (await answered(stack)).status_code == 200
