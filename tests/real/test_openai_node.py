"""OpenAI's Node SDK before a real vLLM: one script sees it all, and what it saw is judged here."""

from typing import Any

import pytest

from tests.real import node
from tests.real.answers import CITIES
from tests.real.conftest import Real
from tests.running import Gateway

REFUSALS = {
    "long": ("BadRequestError", 400, "context_length_exceeded", "invalid_request_error"),
    "longStream": ("BadRequestError", 400, "context_length_exceeded", "invalid_request_error"),
    "longResponse": ("BadRequestError", 400, "context_length_exceeded", "invalid_request_error"),
    "model": ("NotFoundError", 404, "model_not_found", "invalid_request_error"),
    "route": ("NotFoundError", 404, "not_found", "invalid_request_error"),
    "key": ("AuthenticationError", 401, "invalid_api_key", "invalid_request_error"),
    "absent": ("InternalServerError", 503, "engine_loading", "server_error"),
}


@pytest.fixture(scope="module")
async def seen(gateway: Gateway, real: Real) -> dict[str, Any]:
    """What the script printed."""
    printed: dict[str, Any] = await node.run("chat.mjs", gateway, real.chat.model)
    return printed


def test_an_answer_and_its_stream_are_the_same(seen: dict[str, Any]) -> None:
    """With the same counts, and an id on the answer."""
    assert "Paris" in seen["chat"]["text"]
    assert seen["stream"]["text"] == seen["chat"]["text"]
    assert seen["stream"]["chunks"] > 1
    assert seen["stream"]["usage"]["total_tokens"] == seen["chat"]["usage"]["total_tokens"]
    assert seen["chat"]["id"].startswith("req_")


def test_a_tool_call_is_assembled_from_its_pieces(seen: dict[str, Any]) -> None:
    """By the SDK's own stream helper."""
    assert seen["tool"]["name"] == "weather"
    assert seen["tool"]["arguments"]["city"] in CITIES


def test_responses_whole_and_streamed_are_the_same(seen: dict[str, Any]) -> None:
    """The SDK's own assembler takes every event."""
    assert "Paris" in seen["responses"]["whole"]
    assert seen["responses"]["streamed"] == seen["responses"]["whole"]
    assert seen["responses"]["usage"]["output_tokens"] > 0


def test_models_are_listed(seen: dict[str, Any], real: Real) -> None:
    """By the SDK's own pages."""
    assert {"default", real.chat.model, real.tiny.model} <= set(seen["models"])


@pytest.mark.parametrize("case", REFUSALS)
def test_the_sdk_raises_what_it_should(seen: dict[str, Any], case: str) -> None:
    """Class, status, code, type and request id."""
    raised = seen["refusals"][case]
    assert (raised["name"], raised["status"], raised["code"], raised["type"]) == REFUSALS[case]
    assert raised["id"].startswith("req_")
