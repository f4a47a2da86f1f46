"""Token counts: read from an engine's `usage` object, wherever it stands, and counted in the metrics."""

import re
from typing import Any, NamedTuple

import orjson

from gateway.metrics import Traffic

# In raw JSON the five letters between unescaped quotes, then a colon, can only be a member's name.
# The object nests one level (the details), and none of its strings holds a brace.
_USAGE = re.compile(rb'"usage"\s*+:\s*+(\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\})')
MAX_USAGE_BYTES = 65_536
MAX_LOOKS = 100


class Usage(NamedTuple):
    """Tokens of one request. `cached` is part of `prompt`, `reasoning` part of `completion`."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0


def from_json(usage: Any) -> Usage | None:
    """The counts of a `usage` object; None for anything else. Details may be null or absent."""
    if not isinstance(usage, dict):
        return None
    return Usage(
        prompt=_number(usage.get("prompt_tokens")),
        cached=_detail(usage, "prompt_tokens_details", "cached_tokens"),
        completion=_number(usage.get("completion_tokens")),
        reasoning=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def in_answer(body: bytes) -> Usage | None:
    """The counts in a whole JSON answer, found from its end without parsing the rest.

    An answer whose other members are no valid JSON (a bare -Infinity among log probabilities)
    is counted all the same. Nothing that stands in it makes this fail or take long: everybody waits for it.
    """
    start = len(body)
    for _ in range(MAX_LOOKS):
        start = body.rfind(b'"usage"', 0, start)
        if start < 0:
            return None
        found = _USAGE.match(body, start, start + MAX_USAGE_BYTES)
        if found is not None:
            return _parsed(found[1])
    return None


def count(traffic: Traffic, key: str, model: str, usage: Usage) -> None:
    """Add the counts to `gateway_tokens_total`."""
    traffic.add_tokens(key, model, "prompt", usage.prompt)
    traffic.add_tokens(key, model, "completion", usage.completion)
    if usage.cached:
        traffic.add_tokens(key, model, "cached", usage.cached)
    if usage.reasoning:
        traffic.add_tokens(key, model, "reasoning", usage.reasoning)


def _parsed(usage: bytes) -> Usage | None:
    try:
        return from_json(orjson.loads(usage))
    except orjson.JSONDecodeError:
        return None


def _detail(usage: dict[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    return _number(details.get(name)) if isinstance(details, dict) else 0


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
