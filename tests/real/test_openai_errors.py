"""The class that OpenAI's Python SDK raises, and what it holds, for all that a real engine refuses."""

from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.prompts import HELLO, user
from tests.real.conftest import Real

LONG = "word " * 9000
Call = Callable[[AsyncOpenAI], Awaitable[Any]]


def chat(**changed: Any) -> Call:
    """A chat call with other arguments than the usual ones."""
    arguments: dict[str, Any] = {"model": "default", "messages": HELLO, "max_tokens": 2, **changed}
    return lambda client: client.chat.completions.create(**arguments)


CASES: dict[str, tuple[Call, type[openai.APIStatusError], str, str | None]] = {
    # What the engine refuses, in its own words.
    "wrong type": (chat(temperature="hot"), openai.BadRequestError, "invalid_request", "temperature"),
    "out of range": (chat(top_p=7), openai.BadRequestError, "invalid_request", "top_p"),
    "no messages": (chat(messages=[]), openai.BadRequestError, "invalid_request", None),
    "no role": (chat(messages=[{"content": "x"}]), openai.BadRequestError, "invalid_request", None),
    "too many tokens asked for": (chat(max_tokens=9000), openai.BadRequestError, "*", None),
    # Prompts that are too long, on each route, streamed or not.
    "long chat": (chat(messages=user(LONG)), openai.BadRequestError, "context_length_exceeded", None),
    "long streamed chat": (
        chat(messages=user(LONG), stream=True), openai.BadRequestError, "context_length_exceeded", None,
    ),
    "long completion": (
        lambda client: client.completions.create(model="default", prompt=LONG),
        openai.BadRequestError, "context_length_exceeded", None,
    ),
    "long streamed completion": (
        lambda client: client.completions.create(model="default", prompt=LONG, stream=True),
        openai.BadRequestError, "context_length_exceeded", None,
    ),
    # What the gateway refuses.
    "too many choices": (chat(n=9), openai.BadRequestError, "invalid_request", "n"),
    "stream of a wrong type": (
        chat(extra_body={"stream": "yes"}), openai.BadRequestError, "invalid_request", "stream",
    ),
    "unknown model": (chat(model="gpt-4o"), openai.NotFoundError, "model_not_found", "model"),
    "unknown model, listed": (
        lambda client: client.models.retrieve("gpt-4o"), openai.NotFoundError, "model_not_found", "model",
    ),
    "unknown route": (
        lambda client: client.images.generate(prompt="a cat"), openai.NotFoundError, "not_found", None,
    ),
    "route that the model lacks": (
        lambda client: client.embeddings.create(model="default", input="a cat"),
        openai.BadRequestError, "invalid_request", "model",
    ),
    "wrong key": (
        lambda client: client.with_options(api_key="sk-wrong").models.list(),
        openai.AuthenticationError, "invalid_api_key", None,
    ),
    "engine that is not there": (
        chat(model="absent"), openai.InternalServerError, "engine_loading", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_the_sdk_raises_what_it_should(client: AsyncOpenAI, case: str) -> None:
    """Class, code, field, type and request id; never a 500, never the engine's own number for a code."""
    call, expected, code, param = CASES[case]
    with pytest.raises(openai.APIStatusError) as raised:
        await call(client)
    error = raised.value
    assert type(error) is expected, error
    assert code in ("*", error.code), error
    assert param is None or (error.param or "").split(".")[-1] == param, error
    assert error.type == ("server_error" if error.status_code >= 500 else "invalid_request_error")
    assert (error.request_id or "").startswith("req_")


async def test_a_caller_learns_where_the_model_is_not_named(client: AsyncOpenAI, real: Real) -> None:
    """The refusal of an unknown name does not tell which other names there are."""
    with pytest.raises(openai.NotFoundError) as refused:
        await chat(model="gpt-4o")(client)
    assert real.tiny.model not in str(refused.value)
    assert "gpt-4o" in str(refused.value)


async def test_an_engine_that_loads_says_when_to_come_back(client: AsyncOpenAI) -> None:
    """The SDK waits so long by itself where it may retry."""
    with pytest.raises(openai.InternalServerError) as refused:
        await chat(model="absent")(client)
    assert refused.value.status_code == 503
    assert float(refused.value.response.headers["retry-after"]) == 15
