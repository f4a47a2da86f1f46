"""LangChain's ChatOpenAI, told the base URL and a key as docs/clients.md does."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.real.answers import CITIES, GetWeather, Thing
from tests.real.conftest import Real
from tests.running import Gateway

QUESTION = "What is the capital of France? Answer in one sentence."


Chat = Callable[..., ChatOpenAI]


@pytest.fixture(scope="module")
async def chat(gateway: Gateway) -> AsyncIterator[Chat]:
    """Makes the model as a program would; its connections, which it does not close itself, end with it."""
    async with openai.DefaultAsyncHttpxClient(trust_env=False) as http:

        def made(**changed: Any) -> ChatOpenAI:
            usual = {"model": "default", "temperature": 0, "max_completion_tokens": 120}
            return ChatOpenAI(
                base_url=f"{gateway.url}/v1", api_key=SecretStr(gateway.key), http_async_client=http,
                max_retries=0, **{**usual, **changed},
            )  # fmt: skip

        yield made


async def test_a_question_gets_its_answer(chat: Chat, real: Real) -> None:
    """With counts where LangChain looks for them."""
    messages = [SystemMessage("Be brief."), HumanMessage(QUESTION)]
    answer = await chat(max_completion_tokens=24).ainvoke(messages)
    assert "Paris" in str(answer.content)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] > 1
    assert answer.response_metadata["model_name"] == real.chat.model


async def test_a_stream_adds_up_to_the_answer(chat: Chat) -> None:
    """Chunk by chunk, counts included where they are asked for."""
    whole: AIMessageChunk | None = None
    model = chat(max_completion_tokens=24, stream_usage=True)
    async for chunk in model.astream(QUESTION):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert "Paris" in str(whole.content)
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] > 1


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_structured_output_is_an_object_of_the_class(chat: Chat, method: Any) -> None:
    """By a schema for the answer, or by a tool that must be called."""
    model = chat().with_structured_output(Thing, method=method, strict=True)
    assert isinstance(await model.ainvoke("A colour and a size."), Thing)


async def test_a_bound_tool_is_called_and_its_answer_taken_back(chat: Chat) -> None:
    """Both halves of an agent's loop."""
    model = chat().bind_tools([GetWeather], tool_choice="required", strict=True)
    asked = HumanMessage("What is the weather in Paris?")
    answer: Any = await model.ainvoke([asked])
    [call] = answer.tool_calls
    assert call["name"] == "GetWeather"
    assert call["args"]["city"] in CITIES
    told = ToolMessage("sunny", tool_call_id=call["id"])
    assert (await chat(max_completion_tokens=3).ainvoke([asked, answer, told])).content


async def test_the_responses_api_works_too(chat: Chat) -> None:
    """LangChain speaks it when told to."""
    answer = await chat(use_responses_api=True, max_completion_tokens=24).ainvoke(QUESTION)
    assert "Paris" in str(answer.content)


async def test_errors_keep_their_class(chat: Chat, real: Real) -> None:
    """What its users catch is what OpenAI's SDK raises."""
    with pytest.raises(openai.BadRequestError) as refused:
        await chat(model=real.tiny.model).ainvoke("word " * 5000)
    assert refused.value.code == "context_length_exceeded"
