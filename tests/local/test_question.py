"""What is shown of an answer: one line, without anything that a terminal obeys."""

import json
from typing import Any

import pytest

from deploy.local import question


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"content": "\n Paris is it.\nAnd more."}, "Paris is it."),
        ({"content": "It's \u201cParis\u201d, 巴黎 \U0001f5fc"}, "It's \u201cParis\u201d, 巴黎 \U0001f5fc"),
        ({"content": None, "reasoning": "The user asks"}, "The user asks"),
        ({"content": "", "reasoning": " "}, "(nothing)"),
        ({"content": "a\x1b]52;c;cm0=\x07b\x9b2J"}, "a\\x1b]52;c;cm0=\\x07b\\x9b2J"),
        ({"content": "over\rwritten"}, "over"),
        ({"content": "\u202ebackwards \ud800"}, "\\u202ebackwards \\ud800"),
        ({"content": "x" * 9999}, "x" * 300),
    ],
)
def test_first_line(message: dict[str, Any], shown: str) -> None:
    """What is no character to be printed stands as an escape; the line is a line, and not long."""
    assert question.first_line(message) == shown
    assert question.told({"choices": [{"message": message}]}).endswith(f" it says: {shown}")


def test_one_question() -> None:
    """What is pasted asks the same as the call of `make up`, which wants a short answer besides."""
    assert json.loads(question.pasted()) | {"max_tokens": 32} == question.body()
    assert "'" not in question.pasted()
