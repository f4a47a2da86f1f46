"""A stop lets running answers end."""

import asyncio

from tests.prompts import COUNT
from tests.stack.stack import Stack

# Fewer than the slowest machine makes within the drain time of half a minute.
TOKENS = 60


async def test_docker_compose_stop_lets_a_stream_end(stack: Stack) -> None:
    """It comes whole, and nothing had to be killed: the exit codes are 0."""
    async with stack.sdk() as sdk:
        stream = await sdk.chat.completions.create(
            model="default", messages=COUNT, max_tokens=TOKENS, stream=True, extra_body={"ignore_eos": True}
        )
        chunks = aiter(stream)
        await anext(chunks)
        stopping = asyncio.create_task(stack.compose("stop"))
        reasons = [chunk.choices[0].finish_reason async for chunk in chunks if chunk.choices]
        await stopping
    assert reasons[-1] == "length"
    codes = {one.service: one.exit_code for one in (await stack.containers()).values()}
    assert {codes[service] for service in ("gateway", "caddy", "vllm", "prometheus", "alertmanager")} == {
        0
    }, codes
