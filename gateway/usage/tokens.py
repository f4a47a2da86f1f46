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

_CACHED = "cache_read_input_tokens"
_CREATED = "cache_creation_input_tokens"


class Usage(NamedTuple):
    """Tokens of one request. `cached` is part of `prompt`, `reasoning` part of `completion`."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0

    def after(self, earlier: "Usage | None") -> "Usage":
        """What a stream has counted by now: never less than before, whatever it says."""
        return self if earlier is None else Usage(*map(max, self, earlier))


def from_json(usage: Any, *, generates: bool = True) -> Usage | None:
    """The counts of a `usage` object, in OpenAI's names or Anthropic's; None unless it tells all of them.

    Both the prompt's and, where tokens are made, the completion's must be numbers: what is none is not 0.
    Details may be null or absent. Where only `total_tokens` is told (rerank), they are the prompt's.
    """
    if not isinstance(usage, dict):
        return None
    prompt: Any = usage.get("prompt_tokens")
    completion: Any = usage.get("completion_tokens")
    # As nearly all answers tell them; the rest is for those that do not.
    usual = type(prompt) is int and type(completion) is int
    if not usual or not 0 <= prompt <= MOST_TOKENS or not 0 <= completion <= MOST_TOKENS:
        told = _unusual(usage, generates)
        if told is None:
            return None
        prompt, completion = told
    cached = _detail(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    cached = cached or _number(usage.get(_CACHED)) or 0
    reasoning = _detail(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    return Usage(prompt, min(cached, prompt), completion, min(reasoning, completion))


def in_answer(body: bytes, *, generates: bool = True) -> Usage | None:
    """The counts in a whole JSON answer, found from its end without parsing the rest.

    An answer whose other members are no valid JSON (a bare -Infinity among log probabilities)
    is counted all the same. Nothing that stands in it makes this fail or take long: everybody waits for it.
    """
    # With its colon first: as a text the word may stand there a thousand times, a token of a prompt.
    return _last(body, b'"usage":', generates) or _last(body, b'"usage"', generates)


def at_top(body: bytes, *, generates: bool = True) -> Usage | None:
    """The counts in an answer that repeats what its caller sent, who could write a `usage` of his own there.

    What is no JSON is searched as `in_answer` does.
    """
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return in_answer(body, generates=generates)
    return from_json(answer.get("usage"), generates=generates) if isinstance(answer, dict) else None


def count(traffic: Traffic, key: str, model: str, usage: Usage) -> None:
    """Add the counts to `gateway_tokens_total`."""
    traffic.add_tokens(key, model, "prompt", usage.prompt)
    traffic.add_tokens(key, model, "completion", usage.completion)
    if usage.cached:
        traffic.add_tokens(key, model, "cached", usage.cached)
    if usage.reasoning:
        traffic.add_tokens(key, model, "reasoning", usage.reasoning)


def _last(body: bytes, name: bytes, generates: bool) -> Usage | None:
    start = len(body)
    for _ in range(MAX_LOOKS):
        start = body.rfind(name, 0, start)
        if start < 0:
            return None
        found = _USAGE.match(body, start, start + MAX_USAGE_BYTES)
        counts = _parsed(found[1], generates) if found is not None else None
        if counts is not None:
            return counts
    return None


def _parsed(usage: bytes, generates: bool) -> Usage | None:
    try:
        return from_json(orjson.loads(usage), generates=generates)
    except orjson.JSONDecodeError:
        return None


def _unusual(usage: dict[str, Any], generates: bool) -> tuple[int, int] | None:
    completion = _either(usage, "completion_tokens", "output_tokens")
    if completion is None and not generates:
        completion = 0
    if completion is None:
        return None
    prompt = _prompt(usage, completion)
    return None if prompt is None else (prompt, completion)


def _prompt(usage: dict[str, Any], completion: int) -> int | None:
    """Anthropic's `input_tokens` are those that no cache had a part in; `prompt_tokens` are all of them."""
    if usage.get("prompt_tokens") is not None:
        return _number(usage["prompt_tokens"])
    if usage.get("input_tokens") is not None:
        parts = [_number(usage["input_tokens"])]
        parts += [_number(usage[name]) for name in (_CACHED, _CREATED) if usage.get(name) is not None]
        told = [part for part in parts if part is not None]
        return sum(told) if len(told) == len(parts) else None
    total = _number(usage.get("total_tokens"))
    if "prompt_tokens" in usage or "input_tokens" in usage or total is None:
        return None  # a total is worth no more than what was added up
    return max(0, total - completion)


def _detail(usage: dict[str, Any], groups: tuple[str, ...], name: str) -> int:
    for group in groups:
        details = usage.get(group)
        if isinstance(details, dict):
            return _number(details.get(name)) or 0
    return 0


def _either(usage: dict[str, Any], name: str, other: str) -> int | None:
    value = usage.get(name)
    return _number(usage.get(other) if value is None else value)


def _number(value: Any) -> int | None:
    if type(value) is float and value.is_integer() and value <= MOST_TOKENS:
        value = int(value)
    if type(value) is not int or value < 0:
        return None
    return min(value, MOST_TOKENS)
