"""Limits that change while calls of the key are running: what began under others brings those not back."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.callers import CHAT, Caller, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.public.metered import ODD, Limited, config, limited
from tests.running import Gateway, wait_for

HELLO = {"model": "fake-model", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


async def known(key: Limited, **limits: int) -> None:
    """Give a key these limits, and wait until a caller sees them."""
    changed = await key.gateway.admin("PATCH", f"/admin/keys/{key.id}", json=limits)
    assert changed.status_code == 200

    async def seen() -> bool:
        return (await key.left()).keys() == {"requests" if name == "rpm" else "tokens" for name in limits}

    await wait_for(seen)


async def begin(caller: Caller, key: Limited, body: dict[str, Any]) -> bytes:
    """Send a call but for its last byte, and wait until the gateway has begun it; that byte."""
    headers = [("x-api-key", key.key), ("expect", "100-continue")]
    sent = request("POST", CHAT, headers, json.dumps(body).encode())
    await caller.send(sent[:-1])
    await caller.until(b"100 Continue\r\n\r\n")
    return sent[-1:]


async def test_a_running_call_of_a_time_without_limits(metered: Gateway, fake_engine: FakeEngine) -> None:
    """Its answer tells the limits of now, and leaves what is spent of them spent."""
    key = await limited(metered)
    await fake_engine.script(scripts.gated("go", scripts.chat()), times=1)
    running = asyncio.create_task(key.ask(model=ODD))
    await fake_engine.wait(running=1)
    await known(key, tpm=1000, rpm=1000)
    await key.spend_all(fake_engine)
    assert await key.status() == 429
    await fake_engine.open_gate("go")
    answer = await running
    assert answer.status == 200
    assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
    assert await key.status() == 429


async def test_calls_that_were_begun_before_a_limit_count_in_it(metered: Gateway) -> None:
    """Good ones and those refused for what they say: heads that were sent early open no bucket anew."""
    key = await limited(metered)
    async with AsyncExitStack() as stack:
        begun = [await stack.enter_async_context(Caller(metered)) for _ in range(4)]
        bodies = (HELLO, {**HELLO, "model": "nobody"}) * 2
        lasts = [await begin(caller, key, body) for caller, body in zip(begun, bodies, strict=True)]
        await known(key, rpm=3)
        seen = []
        for caller, last in zip(begun, lasts, strict=True):
            await caller.send(last)
            seen.append((await caller.answer()).status)
        assert seen == [200, 404, 200, 429]
    assert await key.status() == 429


async def test_a_call_that_was_begun_before_a_reload_counts_by_the_new_defaults(
    fake_engine: FakeEngine, tmp_path: Path
) -> None:
    """And does not give others a full bucket again."""
    async with Gateway(tmp_path, config=config(fake_engine.url)) as gateway:
        key = await limited(gateway)
        async with Caller(gateway) as begun:
            last = await begin(begun, key, HELLO)
            limits = "[limits.default]\nrpm = 2\n"
            gateway.config_file.write_text(config(fake_engine.url, limits))
            assert (await gateway.admin("POST", "/admin/reload")).status_code == 200
            assert [await key.status() for _ in range(3)] == [200, 200, 429]
            await begun.send(last)
            assert (await begun.answer()).status == 429
        assert await key.status() == 429
