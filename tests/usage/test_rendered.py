"""What templates may render beside the messages: documents, long kwargs, instructions."""

from typing import Any

import orjson
import pytest

from gateway.usage.shape import JSON_BYTES, PROMPTS, RENDERED_BYTES, TOOLED
from tests.usage.test_bodies import CHAT, EMBEDDINGS, MESSAGES_API, RERANK, RESPONSES, SCORE, shaped

LONG = "Paris is the capital of France. " * 50
DOCUMENTS = [{"title": "France", "text": LONG}, {"text": LONG}]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (CHAT, {"documents": DOCUMENTS}),
        (CHAT, {"chat_template_kwargs": {"enable_thinking": True, "notes": LONG}}),
        (CHAT, {"chat_template_kwargs": {"documents": DOCUMENTS}}),
        (CHAT, {"chat_template_kwargs": {f"word_{number}": "short" for number in range(1000)}}),
        (RESPONSES, {"chat_template_kwargs": {"notes": LONG}}),
        (RESPONSES, {"previous_input_messages": DOCUMENTS}),
        (MESSAGES_API, {"chat_template_kwargs": {"notes": [LONG]}}),
        (EMBEDDINGS, {"messages": [], "chat_template_kwargs": {"notes": LONG}}),
    ],
)
def test_what_a_template_renders_beside_the_messages_is_counted_as_json(
    route: str, body: dict[str, Any]
) -> None:
    """Apart from all else, since the model's template renders it or leaves it out."""
    (value,) = [value for value in body.values() if value]
    shape = shaped(route, **body)
    assert shape.parts[RENDERED_BYTES] == len(orjson.dumps(value)) > 1000
    assert shape.parts[JSON_BYTES] == shape.parts[TOOLED] == 0


@pytest.mark.parametrize(
    "kwargs",
    [{}, None, {"enable_thinking": False, "budget": 1.5, "effort": "high", "a": None, "b": []}, 5, "x"],
)
@pytest.mark.parametrize("route", [CHAT, RESPONSES, MESSAGES_API, RERANK])
def test_switches_and_short_words_for_a_template_are_no_prompt(route: str, kwargs: Any) -> None:
    """They choose what it renders."""
    body = {"chat_template_kwargs": kwargs} | ({"documents": []} if route == CHAT else {})
    assert shaped(route, **body).parts[RENDERED_BYTES] == 0


def test_an_instruction_is_read_with_each_pair() -> None:
    """As the query is."""
    for body in ({"instruction": LONG}, {"chat_template_kwargs": {"instruction": LONG}}):
        shape = shaped(RERANK, query="a", documents=["b", "c", "d"], **body)
        assert shape.parts[RENDERED_BYTES] >= 3 * len(LONG)
        assert shape.parts[PROMPTS] == 3
        assert shaped(SCORE, text_1="a", text_2="b", **body).parts[RENDERED_BYTES] >= len(LONG)
