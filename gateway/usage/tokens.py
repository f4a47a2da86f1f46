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
MOST_TOKENS = 1 << 40  # of one count: what an engine says must fit into a database, and the sums of it too

_COUNTED = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens")
_CACHED = "cache_read_input_tokens"
_CREATED = "cache_creation_input_tokens"


class Usage(NamedTuple):
    """Tokens of one request. `cached` is part of `prompt`, `reasoning` part of `completion`."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0


def from_json(usage: Any) -> Usage | None:
    """The counts of a `usage` object, in OpenAI's names or Anthropic's; None for what tells no numbers.

    Details may be null or absent. Anthropic's `input_tokens` are those that no cache had a part in: prompt
    tokens are their sum with what was read from the cache and written to it. Where only `total_tokens` is
    told (rerank), they are the prompt's.
    """
    if not isinstance(usage, dict) or not _tells_count(usage):
        return None
    completion = _either(usage, "completion_tokens", "output_tokens")
    if "prompt_tokens" in usage or "input_tokens" in usage:
        prompt = _either(usage, "prompt_tokens", "input_tokens")
        prompt += _number(usage.get(_CACHED)) + _number(usage.get(_CREATED))
    else:
        prompt = max(0, _number(usage.get("total_tokens")) - completion)
    return Usage(
        prompt=prompt,
        cached=_detail(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
        or _number(usage.get(_CACHED)),
        completion=completion,
        reasoning=_detail(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"),
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
        counts = _parsed(found[1]) if found is not None else None
        if counts is not None:
            return counts
    return None


def at_top(body: bytes) -> Usage | None:
    """The counts in an answer that repeats what its caller sent, who could write a `usage` of his own there.

    What is no JSON is searched as `in_answer` does.
    """
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return in_answer(body)
    return from_json(answer.get("usage")) if isinstance(answer, dict) else None


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


def _detail(usage: dict[str, Any], groups: tuple[str, ...], name: str) -> int:
    for group in groups:
        details = usage.get(group)
        if isinstance(details, dict):
            return _number(details.get(name))
    return 0


def _either(usage: dict[str, Any], name: str, other: str) -> int:
    return _number(usage[name] if name in usage else usage.get(other))


def _tells_count(usage: dict[str, Any]) -> bool:
    for name in _COUNTED:
        value = usage.get(name)
        if type(value) is int and value >= 0:
            return True
    return False


def _number(value: Any) -> int:
    if type(value) is not int or value <= 0:
        return 0
    return min(value, MOST_TOKENS)
