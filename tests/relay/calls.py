"""Calls of a gateway before the fake engine, by the SDK and raw."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from gateway.routes import BY_TEMPLATE
from tests.prompts import HELLO
from tests.running import Gateway, http_client

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
    async with httpx.AsyncClient(timeout=120, trust_env=False) as http:
        return await http.post(
            f"{gateway.url}/v1/chat/completions",
            headers={"authorization": f"Bearer {gateway.key}"},
            json={**CALL, **fields},
        )


CALLS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HELLO},
    "/v1/completions": {"prompt": "hello"},
    "/v1/responses": {"input": "hello"},
    "/v1/messages": {"messages": HELLO, "max_tokens": 5},
    "/v1/messages/count_tokens": {"messages": HELLO},
    "/v1/embeddings": {"input": "hello"},
    "/v1/rerank": {"query": "hello", "documents": ["a", "b"]},
    "/v1/score": {"text_1": "a", "text_2": "b"},
    "/classify": {"input": "hello"},
    "/pooling": {"input": "hello"},
    "/tokenize": {"prompt": "hello"},
    "/detokenize": {"tokens": [1, 2]},
    "/v1/audio/transcriptions": {},
    "/v1/audio/translations": {},
}
"""What a call of each route needs beside its model."""


async def called(
    gateway: Gateway, route: str, *, key: str | None = None, accept: str = "gzip", **fields: object
) -> httpx.Response:
    """The whole answer to a call of this route, as it came."""
    headers = {"authorization": f"Bearer {key or gateway.key}", "accept-encoding": accept, "cookie": "a=b"}
    body = {"model": MODEL, **CALLS[route], **fields}
    async with http_client() as http:
        if BY_TEMPLATE[route].body == "form":
            texts = {name: str(value).lower() for name, value in body.items()}
            files = {"file": ("a.wav", b"RIFF", "audio/wav")}
            return await http.post(gateway.url + route, headers=headers, data=texts, files=files)
        return await http.post(gateway.url + route, headers=headers, json=body)


async def at_rest(gateway: Gateway) -> bool:
    return await gateway.metric("gateway_inflight") == 0
