"""What llama.cpp refuses is told in OpenAI's shape, and whose fault it is."""

from typing import Any

import openai
import pytest

from tests.openai_engine.calls import CALLS, chat
from tests.openai_engine.conftest import Stage


async def refused(stage: Stage, name: str, **more: Any) -> openai.BadRequestError:
    """The SDK's error for a recorded call."""
    await stage.plays(name)
    found = CALLS[name].body
    async with stage.sdk() as sdk:
        with pytest.raises(openai.BadRequestError) as raised:
            await sdk.post(
                CALLS[name].path.removeprefix("/v1"), body={**(found or {}), **more}, cast_to=object
            )
    assert isinstance(raised.value.body, dict)
    assert set(raised.value.body) == {"message", "type", "param", "code"}
    return raised.value


@pytest.mark.parametrize("name", ["too_long", "too_long_stream"])
async def test_prompt_that_is_too_long(stage: Stage, name: str) -> None:
    """`exceed_context_size_error` is `context_length_exceeded`, in the engine's words, streamed or not."""
    error = await refused(stage, name)
    assert error.code == "context_length_exceeded"
    assert "exceeds the available context size" in error.message


async def test_field_that_it_refuses(stage: Stage) -> None:
    """What this server was not started for is the caller's to know, in the engine's words."""
    error = await refused(stage, "n_beyond_its_slots")
    assert error.code == "invalid_request"
    assert "Field 'n'" in error.message


@pytest.mark.parametrize("name", ["wrong_type", "bad_json"])
async def test_whatever_it_refuses(recorded: Stage, name: str) -> None:
    """Each 400 of llama.cpp's is one of ours, and names nothing of its inside."""
    await recorded.plays(name)
    async with recorded.sdk() as sdk:
        with pytest.raises(openai.BadRequestError) as raised:
            await sdk.chat.completions.create(**chat())
    assert raised.value.code == "invalid_request"
    assert "exception" not in raised.value.message


@pytest.mark.parametrize("name", ["unknown_route", "embeddings"])
async def test_route_that_it_does_not_serve(stage: Stage, name: str) -> None:
    """Whether llama.cpp has no such route or was started without it, the caller is told that in our words."""
    error = await refused(stage, name)
    assert error.code == "invalid_request"
    assert f"does not serve {CALLS[name].path}" in error.message


async def test_the_log_keeps_its_words(recorded: Stage) -> None:
    """The caller's error hides nothing from the operator: the log names the engine's type."""
    error = await refused(recorded, "too_long")
    line = await recorded.gateway.request_line(error.response.headers["x-request-id"])
    assert "exceed_context_size_error" in str(line)


async def test_call_after_an_error(recorded: Stage) -> None:
    """llama.cpp closes the connection after each error: the next call is answered all the same."""
    await refused(recorded, "too_long")
    await recorded.plays("chat")
    async with recorded.sdk() as sdk:
        assert (await sdk.chat.completions.create(**chat())).choices
