"""Embeddings by real clients, with a real model behind: what is alike is near, in every SDK's encoding."""

import base64
import struct
from collections.abc import Sequence

import openai
import pytest
from langchain_openai import OpenAIEmbeddings
from openai import AsyncOpenAI
from pydantic import SecretStr

from tests.real import node
from tests.real.engines import RealEngine
from tests.running import Gateway, http_client

TEXTS = ["a cat", "a kitten", "the stock market"]
SIZE = 384


def product(a: Sequence[float], b: Sequence[float]) -> float:
    """The likeness of two vectors of length one."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def assert_meaningful(cat: Sequence[float], kitten: Sequence[float], market: Sequence[float]) -> None:
    """Vectors of length one, the likes nearer than the unlike."""
    assert len(cat) == SIZE
    assert product(cat, cat) == pytest.approx(1, abs=0.01)
    assert product(cat, kitten) > 0.6 > 0.3 > product(cat, market)


async def test_openais_sdk_gets_vectors_that_mean_something(
    client: AsyncOpenAI, embedder: RealEngine
) -> None:
    """In base64, which it asks for by itself, under the name that tools have written into them."""
    answer = await client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
    assert [item.index for item in answer.data] == [0, 1, 2]
    assert_meaningful(*(item.embedding for item in answer.data))
    assert answer.model == embedder.model
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)


async def test_both_encodings_hold_the_same_numbers(client: AsyncOpenAI, embedder: RealEngine) -> None:
    """Base64 is of 32-bit floats, little-endian."""
    create = client.with_raw_response.embeddings.create
    plain = (await create(model=embedder.model, input="a cat", encoding_format="float")).http_response.json()
    coded = (await create(model=embedder.model, input="a cat", encoding_format="base64")).http_response.json()
    raw = base64.b64decode(coded["data"][0]["embedding"])
    assert struct.unpack(f"<{SIZE}f", raw) == pytest.approx(plain["data"][0]["embedding"], abs=1e-3)


async def test_token_ids_are_a_prompt_too(
    client: AsyncOpenAI, gateway: Gateway, embedder: RealEngine
) -> None:
    """What the tokenizer of this model answers, sent back, is the text's own vector."""
    tokens = (await gateway_post(gateway, "/tokenize", {"model": embedder.model, "prompt": "a cat"}))[
        "tokens"
    ]
    by_ids = await client.embeddings.create(model=embedder.model, input=[tokens])
    by_text = await client.embeddings.create(model=embedder.model, input="a cat")
    assert product(by_ids.data[0].embedding, by_text.data[0].embedding) == pytest.approx(1, abs=0.01)


async def gateway_post(gateway: Gateway, path: str, body: object) -> dict[str, list[int]]:
    """The parsed answer of a route that no SDK knows."""
    async with http_client() as http:
        answer = await http.post(gateway.url + path, headers={"x-api-key": gateway.key}, json=body)
    parsed: dict[str, list[int]] = answer.json()
    return parsed


async def test_langchain_gets_the_same(gateway: Gateway, embedder: RealEngine) -> None:
    """With the one switch that docs/clients.md names: otherwise it sends another model's token ids."""
    async with openai.DefaultAsyncHttpxClient(trust_env=False) as http:
        embeddings = OpenAIEmbeddings(
            model=embedder.model, base_url=f"{gateway.url}/v1", api_key=SecretStr(gateway.key),
            check_embedding_ctx_length=False, http_async_client=http,
        )  # fmt: skip
        assert_meaningful(*await embeddings.aembed_documents(TEXTS))


async def test_openais_node_sdk_gets_the_same(gateway: Gateway, embedder: RealEngine) -> None:
    """In base64, which it asks for by itself too."""
    seen = await node.run("embed.mjs", gateway, embedder.model)
    assert seen["sizes"] == [SIZE] * 3
    assert seen["like"] > 0.6 > 0.3 > seen["unlike"]
    assert seen["same"] == pytest.approx(1, abs=0.01)
    assert seen["usage"]["prompt_tokens"] > 3
