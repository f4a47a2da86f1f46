"""The question that a stack is asked once it is up: how it is put, and what is shown of the answer."""

import json
from collections.abc import Mapping
from typing import Any

TEXT = "What is the capital of France? Answer in one sentence."
MOST_TOKENS = 32
MOST_SHOWN = 300


def body() -> dict[str, Any]:
    """The body of a chat call that asks it, and wants a short answer."""
    return {**_call(), "max_tokens": MOST_TOKENS}


def pasted() -> str:
    """The same as a line of curl holds it: JSON between single quotes."""
    return json.dumps(_call())


def _call() -> dict[str, Any]:
    return {"model": "default", "messages": [{"role": "user", "content": TEXT}]}


def told(answer: Mapping[str, Any]) -> str:
    """What a model said to it, of a chat completion."""
    line = first_line(answer["choices"][0]["message"])
    return f"Asked for the capital of France it says: {line}"


def first_line(message: Mapping[str, Any]) -> str:
    """The first line of a model's message, or of its thoughts where it says nothing.

    What a terminal would obey is written as an escape: a model may say anything, and this is shown to root.
    """
    said = (message.get("content") or message.get("reasoning") or "").strip() or "(nothing)"
    return repr(said.splitlines()[0][:MOST_SHOWN])[1:-1]
