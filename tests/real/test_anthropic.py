"""Anthropic's Python SDK, pointed at the base URL without /v1, with a real vLLM behind it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import AsyncAnthropic

from tests.real.answers import GetWeather
from tests.real.conftest import Real
from tests.running import Gateway

QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
TOOL: Any = {
    "name": "GetWeather",
    "description": "The weather in a city.",
    "input_schema": GetWeather.model_json_schema(),
    "strict": True,
}
SURE = {"temperature": 0}  # the SDK's own method does not name it
Call = Callable[[AsyncAnthropic], Awaitable[Any]]


@pytest.fixture(scope="module")
async def claude(gateway: Gateway) -> AsyncIterator[AsyncAnthropic]:
    """The SDK with our key as its own."""
    async with AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0) as sdk:
        yield sdk


async def test_a_question_gets_its_answer(claude: AsyncAnthropic) -> None:
    """In the SDK's own class, with the engine's counts."""
    message = await claude.messages.create(
        model="default", messages=QUESTION, system="Be brief.", max_tokens=24, extra_body=SURE
    )
    [block] = message.content
    assert block.type == "text"
    assert "Paris" in block.text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.input_tokens > 10
    assert message.usage.output_tokens > 1


async def test_a_stream_is_the_same_answer_in_pieces(claude: AsyncAnthropic) -> None:
    """The SDK's own assembler takes every event."""
    arguments: dict[str, Any] = {
        "model": "default", "messages": QUESTION, "max_tokens": 24, "extra_body": SURE,
    }  # fmt: skip
    whole = await claude.messages.create(**arguments)
    async with claude.messages.stream(**arguments) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    assert text == whole.content[0].text
    assert final.usage == whole.usage
    assert final.stop_reason == whole.stop_reason


async def test_tokens_are_counted_as_the_engine_will(claude: AsyncAnthropic) -> None:
    """The count before the call is what the call then says."""
    counted = await claude.messages.count_tokens(model="default", messages=QUESTION, system="Be brief.")
    message = await claude.messages.create(
        model="default", messages=QUESTION, system="Be brief.", max_tokens=1
    )
    assert counted.input_tokens == message.usage.input_tokens


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_must_be_called_is(claude: AsyncAnthropic, *, stream: bool) -> None:
    """With input that fits its schema, whole or in pieces."""
    arguments: dict[str, Any] = {
        "model": "default", "messages": QUESTION, "tools": [TOOL], "tool_choice": {"type": "any"},
        "max_tokens": 120, "extra_body": SURE,
    }  # fmt: skip
    if stream:
        async with claude.messages.stream(**arguments) as events:
            message = await events.get_final_message()
    else:
        message = await claude.messages.create(**arguments)
    [call] = [block for block in message.content if block.type == "tool_use"]
    assert call.name == "GetWeather"
    assert GetWeather.model_validate(call.input)
    assert message.stop_reason == "tool_use"


async def test_a_tools_answer_is_taken_back(claude: AsyncAnthropic) -> None:
    """The second half of the loop."""
    messages: list[Any] = [
        *QUESTION,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "GetWeather", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]},
    ]
    message = await claude.messages.create(model="default", messages=messages, tools=[TOOL], max_tokens=3)
    assert message.content


async def test_thinking_is_switched_by_the_callers_word(claude: AsyncAnthropic, real: Real) -> None:
    """Visible in the prompt, which the template writes differently."""
    count = claude.messages.count_tokens
    hello: list[Any] = [{"role": "user", "content": "hello"}]
    off = await count(model=real.tiny.model, messages=hello)
    on = await count(
        model=real.tiny.model, messages=hello, thinking={"type": "enabled", "budget_tokens": 1024}
    )
    variant = await count(model=f"{real.tiny.model}:thinking", messages=hello)
    assert on.input_tokens == variant.input_tokens != off.input_tokens


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
async def test_the_key_comes_in_either_header(gateway: Gateway, header: str) -> None:
    """SDKs of different ages send it differently; so do Claude Code's two variables."""
    value = gateway.key if header == "x-api-key" else f"Bearer {gateway.key}"
    body = {"model": "default", "messages": QUESTION, "max_tokens": 1}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        answer = await http.post(f"{gateway.url}/v1/messages?beta=true", headers={header: value}, json=body)
    assert answer.json()["type"] == "message"


async def test_a_token_for_gateways_works_too(gateway: Gateway) -> None:
    """`auth_token`, the SDK's word for a key that is not Anthropic's."""
    async with AsyncAnthropic(base_url=gateway.url, auth_token=gateway.key, max_retries=0) as sdk:
        assert (await sdk.messages.create(model="default", messages=QUESTION, max_tokens=1)).content


def call(**changed: Any) -> Call:
    """A call with other arguments than the usual ones."""
    arguments: dict[str, Any] = {"model": "default", "messages": QUESTION, "max_tokens": 2, **changed}
    return lambda sdk: sdk.messages.create(**arguments)


LONG: list[Any] = [{"role": "user", "content": "word " * 9000}]
ERRORS: dict[str, tuple[Call, type[anthropic.APIStatusError], str]] = {
    "wrong type": (
        call(extra_body={"temperature": "hot"}), anthropic.BadRequestError, "invalid_request_error",
    ),
    "no messages": (call(messages=[]), anthropic.BadRequestError, "invalid_request_error"),
    "no cap": (call(max_tokens=0), anthropic.BadRequestError, "invalid_request_error"),
    "long": (call(messages=LONG), anthropic.BadRequestError, "invalid_request_error"),
    "long stream": (call(messages=LONG, stream=True), anthropic.BadRequestError, "invalid_request_error"),
    "long count": (
        lambda sdk: sdk.messages.count_tokens(model="default", messages=LONG),
        anthropic.BadRequestError, "invalid_request_error",
    ),
    "unknown model": (call(model="claude-opus-4"), anthropic.NotFoundError, "not_found_error"),
    "wrong key": (
        lambda sdk: call()(sdk.with_options(api_key="sk-wrong")),
        anthropic.AuthenticationError, "authentication_error",
    ),
    "engine that is not there": (
        call(model="absent"), anthropic.InternalServerError, "overloaded_error",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
async def test_the_sdk_raises_what_it_should(claude: AsyncAnthropic, case: str) -> None:
    """Class, type and request id, in Anthropic's shape."""
    broken, expected, kind = ERRORS[case]
    with pytest.raises(anthropic.APIStatusError) as raised:
        await broken(claude)
    error = raised.value
    assert isinstance(error, expected), error
    body: Any = error.body
    assert body["type"] == "error"
    assert body["error"]["type"] == kind
    assert body["error"]["message"]
    assert (error.response.headers["x-request-id"]).startswith("req_")
