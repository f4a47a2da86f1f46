"""Tools and structured outputs by the helpers of OpenAI's Python SDK, which check what comes back."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.real.answers import SURE, WEATHER, GetWeather, Thing
from tests.real.conftest import Real

TOOLS = [openai.pydantic_function_tool(GetWeather)]
NAMED = {"type": "function", "function": {"name": "GetWeather"}}


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
async def test_a_tool_that_must_be_called_is(client: AsyncOpenAI, choice: Any) -> None:
    """With arguments that fit its schema, parsed by the SDK into the caller's own class."""
    answer = await client.chat.completions.parse(
        model="default", messages=WEATHER, tools=TOOLS, tool_choice=choice, **SURE
    )
    [call] = answer.choices[0].message.tool_calls or []
    assert call.function.name == "GetWeather"
    assert isinstance(call.function.parsed_arguments, GetWeather)


async def test_a_tool_call_streams_in_pieces(client: AsyncOpenAI) -> None:
    """The pieces together are the arguments; the last chunk says why it ended."""
    async with client.chat.completions.stream(
        model="default", messages=WEATHER, tools=TOOLS, tool_choice="required", **SURE
    ) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_completion()
    [call] = final.choices[0].message.tool_calls or []
    deltas = [e.arguments_delta for e in events if e.type == "tool_calls.function.arguments.delta"]
    assert "".join(deltas) == call.function.arguments
    assert isinstance(call.function.parsed_arguments, GetWeather)
    assert final.choices[0].finish_reason == "tool_calls"


async def test_a_tools_answer_is_taken_back(client: AsyncOpenAI, real: Real) -> None:
    """The second half of the loop: the call, its result, and the model goes on."""
    call = {"id": "call_1", "type": "function", "function": {"name": "GetWeather", "arguments": "{}"}}
    messages: list[Any] = [
        *WEATHER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ]
    answer = await client.chat.completions.create(
        model=real.chat.model, messages=messages, tools=TOOLS, max_tokens=3
    )
    assert answer.choices[0].message.content


async def test_tools_that_may_be_called_leave_the_model_its_choice(client: AsyncOpenAI) -> None:
    """Without `tool_choice` a model that knows no tools answers in words; nothing is refused."""
    answer = await client.chat.completions.create(
        model="default", messages=WEATHER, tools=TOOLS, temperature=0, max_tokens=8
    )
    assert answer.choices[0].message.content


async def test_an_answer_is_parsed_into_a_class(client: AsyncOpenAI) -> None:
    """`.parse()` sends the class's JSON schema and gets an object of it."""
    answer = await client.chat.completions.parse(
        model="default", messages=WEATHER, response_format=Thing, **SURE
    )
    assert isinstance(answer.choices[0].message.parsed, Thing)


async def test_a_streamed_answer_is_parsed_into_a_class(client: AsyncOpenAI) -> None:
    """The same from the pieces of a stream."""
    async with client.chat.completions.stream(
        model="default", messages=WEATHER, response_format=Thing, **SURE
    ) as stream:
        final = await stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Thing)


async def test_json_mode_answers_an_object(client: AsyncOpenAI) -> None:
    """The older promise: some JSON object, cut off at the cap at worst."""
    answer = await client.chat.completions.create(
        model="default", messages=WEATHER, response_format={"type": "json_object"}, temperature=0,
        max_tokens=20,
    )  # fmt: skip
    assert (answer.choices[0].message.content or "").lstrip().startswith("{")


async def test_a_schema_that_is_none_is_refused(client: AsyncOpenAI) -> None:
    """400 with the field, before anything is generated."""
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(
            model="default", messages=WEATHER, max_tokens=5,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no"}}},
        )  # fmt: skip
    assert refused.value.code == "invalid_request"
