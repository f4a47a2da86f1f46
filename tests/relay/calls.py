"""Calls of a gateway before the fake engine, by the SDK and raw."""

from collections.abc import AsyncIterator

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.prompts import HELLO
from tests.running import Gateway

MODEL = "fake-model"
CALL = {"model": MODEL, "messages": HELLO}


async def stream_text(client: AsyncOpenAI) -> AsyncIterator[str]:
    stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    async for chunk in stream:
        yield chunk.choices[0].delta.content or ""


async def error_of(client: AsyncOpenAI, pieces: list[str]) -> openai.APIError:
    """What the SDK raises in the middle of a stream, after `pieces`."""
    try:
        async for piece in stream_text(client):
            pieces.append(piece)  # noqa: PERF401  what came before the error is kept
    except openai.APIError as error:
        return error
    pytest.fail("the stream looked complete")


async def raw(gateway: Gateway, **fields: object) -> httpx.Response:
    """The whole answer as it came."""
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        return await http.post(
            f"{gateway.url}/v1/chat/completions",
            headers={"authorization": f"Bearer {gateway.key}"},
            json={**CALL, **fields},
        )


async def at_rest(gateway: Gateway) -> bool:
    return await gateway.metric("gateway_inflight") == 0
