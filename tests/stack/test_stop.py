"""A stop lets running answers end."""

import asyncio
import time

from tests.prompts import COUNT
from tests.stack.stack import Stack

TOKENS = 150
DRAIN_SECONDS = 30
OTHERS_SECONDS = 30


async def test_docker_compose_stop_lets_a_stream_end(stack: Stack) -> None:
    """It comes whole, and all is down within the drain time and what others need, with exit code 0."""
    async with stack.sdk() as sdk:
        stream = await sdk.chat.completions.create(
            model="default", messages=COUNT, max_tokens=TOKENS, stream=True, extra_body={"ignore_eos": True}
        )
        chunks = aiter(stream)
        await anext(chunks)
        began = time.monotonic()
        stopping = asyncio.create_task(stack.compose("stop"))
        reasons = [chunk.choices[0].finish_reason async for chunk in chunks if chunk.choices]
        await stopping
    assert time.monotonic() - began < DRAIN_SECONDS + OTHERS_SECONDS
    assert reasons[-1] == "length"
    codes = {one.service: one.exit_code for one in (await stack.containers()).values()}
    assert {codes[service] for service in ("gateway", "caddy", "vllm", "prometheus", "alertmanager")} == {
        0
    }, codes
