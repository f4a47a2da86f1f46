"""What an embedding model serves beside embeddings, and how what it does not serve is refused."""

from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.real.engines import RealEngine
from tests.running import Gateway, http_client

QUERY = "pets at home"
DOCUMENTS = ["the stock market", "a cat sleeps on the sofa"]


async def post(gateway: Gateway, path: str, **body: Any) -> httpx.Response:
    """The answer to a JSON body."""
    async with http_client() as http:
        return await http.post(gateway.url + path, headers={"x-api-key": gateway.key}, json=body)


async def test_rerank_puts_what_fits_first(gateway: Gateway, embedder: RealEngine) -> None:
    """In the shape of Cohere's and Jina's clients, `top_n` included."""
    answer = await post(
        gateway, "/v1/rerank", model=embedder.model, query=QUERY, documents=DOCUMENTS, top_n=1
    )
    [best] = answer.json()["results"]
    assert best["index"] == 1
    assert best["document"]["text"] == DOCUMENTS[1]
    assert 0 < best["relevance_score"] <= 1


@pytest.mark.parametrize("names", [("text_1", "text_2"), ("queries", "documents")])
async def test_score_compares_one_with_many(
    gateway: Gateway, embedder: RealEngine, names: tuple[str, str]
) -> None:
    """Under both spellings of vLLM's."""
    one, many = names
    answer = await post(gateway, "/v1/score", model=embedder.model, **{one: QUERY, many: DOCUMENTS})
    unlike, like = (item["score"] for item in answer.json()["data"])
    assert like > unlike


async def test_pooling_answers_the_vector_itself(gateway: Gateway, embedder: RealEngine) -> None:
    """The same as an embedding of the text."""
    pooled = (await post(gateway, "/pooling", model=embedder.model, input="a cat")).json()
    embedded = (await post(gateway, "/v1/embeddings", model=embedder.model, input="a cat")).json()
    assert pooled["data"][0]["data"] == pytest.approx(embedded["data"][0]["embedding"], abs=1e-3)


async def test_tokens_go_there_and_back(gateway: Gateway, embedder: RealEngine) -> None:
    """The tokenizer writes small letters."""
    tokens = (await post(gateway, "/tokenize", model=embedder.model, prompt="A cat")).json()["tokens"]
    text = (await post(gateway, "/detokenize", model=embedder.model, tokens=tokens)).json()["prompt"]
    assert text == "[CLS] a cat [SEP]"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/classify", {"input": "a cat"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a cat"}]}),
        ("/v1/completions", {"prompt": "a cat"}),
        ("/v1/responses", {"input": "a cat"}),
        ("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "a cat"}]}),
    ],
)
async def test_a_route_that_the_model_lacks_is_the_callers_fault(
    gateway: Gateway, embedder: RealEngine, path: str, body: dict[str, Any]
) -> None:
    """400 with a sentence: the engine's bare 404 would look like a wrong base URL."""
    answer = await post(gateway, path, model=embedder.model, **body)
    error = answer.json()["error"]
    assert answer.status_code == 400, answer.text
    assert error["type"] == "invalid_request_error"
    assert path in error["message"]


async def test_what_the_engine_refuses_is_a_400(client: AsyncOpenAI, embedder: RealEngine) -> None:
    """A text beyond the model's context, a vector of another size."""
    with pytest.raises(openai.BadRequestError) as refused:
        await client.embeddings.create(model=embedder.model, input="word " * 600)
    assert refused.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as refused:
        await client.embeddings.create(model=embedder.model, input="a cat", dimensions=8)
    assert refused.value.code == "invalid_request"


async def test_a_prompt_is_counted_for_the_key(gateway: Gateway, embedder: RealEngine) -> None:
    """What the engine counted is what `gateway_tokens_total` says."""
    made = await gateway.create_key(name="counted")
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=made["key"], max_retries=0) as mine:
        answer = await mine.embeddings.create(model=embedder.model, input=DOCUMENTS)
    counted = await gateway.metric("gateway_tokens_total", key=made["id"], kind="prompt")
    assert counted == answer.usage.prompt_tokens
