"""The Responses API by OpenAI's Python SDK: what agents of today speak by default."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, pydantic_function_tool

from tests.prompts import user
from tests.real.answers import GetWeather, Thing
from tests.real.conftest import Real

QUESTION = "What is the capital of France? Answer in one sentence."
SURE: dict[str, Any] = {"temperature": 0, "max_output_tokens": 120}


def tool() -> Any:
    """The weather tool, in the flat form of this API."""
    function = pydantic_function_tool(GetWeather)["function"]
    return {"type": "function", **function}


async def test_a_question_gets_its_answer(client: AsyncOpenAI) -> None:
    """In the SDK's own class, with counts; and nothing is kept that could be fetched again."""
    answer = await client.responses.create(
        model="default", input=QUESTION, temperature=0, max_output_tokens=24
    )
    assert "Paris" in answer.output_text
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(answer.id)


async def test_a_stream_ends_with_the_whole_answer(client: AsyncOpenAI) -> None:
    """The SDK's own assembler takes every event; the last one has the counts."""
    async with client.responses.stream(
        model="default", input=QUESTION, temperature=0, max_output_tokens=24
    ) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert final.usage is not None
    assert final.usage.output_tokens > 0


async def test_a_conversation_is_sent_whole(client: AsyncOpenAI) -> None:
    """Each turn brings all that was said, the engine's own items among it: nothing is kept between calls."""
    first: Any = {"role": "user", "content": [{"type": "input_text", "text": "Say a colour."}]}
    said = await client.responses.create(model="default", input=[first], max_output_tokens=5)
    again: Any = [first, *said.output, {"role": "user", "content": "Another one."}]
    answer = await client.responses.create(
        model="default", instructions="Be brief.", input=again, max_output_tokens=5, store=True
    )
    assert answer.output_text
    assert answer.usage is not None
    assert said.usage is not None
    assert answer.usage.input_tokens > said.usage.total_tokens


async def test_an_answer_is_parsed_into_a_class(client: AsyncOpenAI) -> None:
    """`text.format` holds the schema here."""
    answer = await client.responses.parse(model="default", input=QUESTION, text_format=Thing, **SURE)
    assert isinstance(answer.output_parsed, Thing)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_must_be_called_is(client: AsyncOpenAI, *, stream: bool) -> None:
    """As an item of the output, whole or in pieces."""
    arguments: dict[str, Any] = {
        "model": "default", "input": "Weather?", "tools": [tool()], "tool_choice": "required", **SURE,
    }  # fmt: skip
    if stream:
        async with client.responses.stream(**arguments) as events:
            answer: Any = await events.get_final_response()
    else:
        answer = await client.responses.create(**arguments)
    [call] = [item for item in answer.output if item.type == "function_call"]
    assert call.name == "GetWeather"
    assert GetWeather.model_validate_json(call.arguments)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_is_too_long_is_a_400(client: AsyncOpenAI, real: Real, *, stream: bool) -> None:
    """Stream or not: the engine's words under a code that clients know."""
    with pytest.raises(openai.BadRequestError, match="context length") as refused:
        await client.responses.create(model=real.tiny.model, input="word " * 5000, stream=stream)
    assert refused.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("background", True),
        ("previous_response_id", "resp_123"),
        ("tools", [{"type": "mcp", "server_label": "x", "server_url": "https://example.org/mcp"}]),
    ],
)
async def test_what_needs_a_store_or_reaches_out_is_refused_by_name(
    client: AsyncOpenAI, field: str, value: Any
) -> None:
    """Rather than be ignored: the caller would rely on it."""
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model="default", input=QUESTION, extra_body={field: value})
    assert refused.value.code == "invalid_request"
    assert (refused.value.param or "").startswith(field)


async def test_the_same_words_count_the_same_as_in_a_chat(client: AsyncOpenAI, real: Real) -> None:
    """The prompt is rendered alike, defaults for the template included."""
    chat = await client.chat.completions.create(model=real.tiny.model, messages=user("hello"), max_tokens=1)
    answer = await client.responses.create(model=real.tiny.model, input="hello", max_output_tokens=1)
    assert chat.usage is not None
    assert answer.usage is not None
    assert answer.usage.input_tokens == chat.usage.prompt_tokens
