"""What costs an engine more than its bytes is bounded, far above what clients send."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.policy import sizes
from tests.policy.calls import CHAT, COMPLETIONS, MESSAGES, RESPONSES, prepare, sent


def schema(size_bytes: int) -> dict[str, Any]:
    return {"type": "object", "description": "x" * size_bytes}


def added(parameters: dict[str, Any]) -> dict[str, Any]:
    tool = {"type": "tool_definition", "definition": {"name": "a", "input_schema": parameters}}
    return {"type": "tool_addition", "tool": tool}


LARGE = schema(sizes.MAX_SCHEMA_BYTES)


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        (
            CHAT,
            {"response_format": {"type": "json_schema", "json_schema": {"schema": LARGE}}},
            "response_format",
        ),
        (CHAT, {"structured_outputs": {"json": LARGE}}, "structured_outputs"),
        (COMPLETIONS, {"structured_outputs": {"grammar": "x" * 200_000}}, "structured_outputs"),
        (CHAT, {"structured_outputs": {"choice": ["x" * 99] * 2000}}, "structured_outputs"),
        (CHAT, {"structured_outputs": {"regex": "a" * 4097}}, "structured_outputs.regex"),
        (CHAT, {"grammar": "x" * 200_000}, "grammar"),
        (CHAT, {"json_schema": LARGE}, "json_schema"),
        (RESPONSES, {"text": {"format": {"type": "json_schema", "schema": LARGE}}}, "text"),
        (MESSAGES, {"output_config": {"format": {"schema": LARGE}}}, "output_config"),
        (CHAT, {"tools": [{"type": "function"}, {"function": {"parameters": LARGE}}]}, "tools[1]"),
        (MESSAGES, {"tools": [{"name": "a", "input_schema": LARGE}]}, "tools[0]"),
        (MESSAGES, {"messages": [{"role": "system", "content": [added(LARGE)]}]}, "messages"),
        (MESSAGES, {"messages": [{"role": "system", "content": [added({})] * 513}]}, "messages"),
        ("/tokenize", {"messages": [], "tools": [{"function": {"parameters": LARGE}}]}, "tools[0]"),
        (CHAT, {"tools": [{"type": "function"}] * 513}, "tools"),
        (CHAT, {"tools": [schema(60_000)] * 9}, "tools"),
        (CHAT, {"stop": ["a"] * 33}, "stop"),
        (CHAT, {"stop": "a" * 1025}, "stop"),
        (MESSAGES, {"stop_sequences": ["a", "b" * 1025]}, "stop_sequences"),
        (CHAT, {"bad_words": ["a"] * 1025}, "bad_words"),
        (COMPLETIONS, {"stop_token_ids": [1] * 16_385}, "stop_token_ids"),
        (COMPLETIONS, {"allowed_token_ids": [1] * 16_385}, "allowed_token_ids"),
        (CHAT, {"logit_bias": {str(number): 1 for number in range(16_385)}}, "logit_bias"),
    ],
)
def test_more_than_any_client_sends_is_refused(route: str, body: dict[str, Any], param: str) -> None:
    """400 that names the field, before an engine starts to compile it while others wait."""
    with pytest.raises(InvalidRequest) as refused:
        prepare(body, route=route)
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"schema": schema(60_000)}}},
        {"tools": [schema(10_000)] * 40},
        {"stop": ["a" * 1024] * 32},
        {
            "stop": None,
            "tools": None,
            "logit_bias": None,
            "response_format": None,
            "structured_outputs": None,
        },
        {"stop": 5, "tools": {}, "logit_bias": 5, "response_format": 5, "structured_outputs": [], "text": 5},
        {"stop": [5, None], "tools": [None], "structured_outputs": {"regex": 5}, "bad_words": "x"},
    ],
)
def test_what_clients_send_and_what_makes_no_sense_passes(body: dict[str, Any]) -> None:
    """Forty large tools do; wrong types are the engine's to judge."""
    assert sent(body) == body


def test_where_nothing_is_generated_the_names_mean_something_else() -> None:
    """A text to embed may be as long as it likes."""
    body = {"input": "x", "text": "x" * 200_000}

    assert sent(body, route="/v1/embeddings") == body
