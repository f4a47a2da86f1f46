"""How much one request may ask for, and for how many choices.

Only fields that the gateway itself relies on are judged; all others are the engine's to judge.
"""

from collections.abc import Mapping
from typing import Any

from gateway.errors import InvalidRequest, quote
from gateway.policy.merge import Written
from gateway.policy.routes import Route
from gateway.settings import Policy

_LOGPROBS = ("logprobs", "top_logprobs", "prompt_logprobs")


def choices(body: Mapping[str, Any], route: Route, policy: Policy) -> int:
    """How many choices the answer will have: n for each prompt.

    Raises InvalidRequest for a field of a wrong type and for more than the policy allows.
    """
    if not route.generates:
        return 1
    for field in _LOGPROBS:
        if body.get(field) is not None:
            _check_logprobs(body[field], field, policy.max_logprobs)
    for field in route.output_caps:
        if body.get(field) is not None:
            _whole(body[field], field)
    n = _n(body, policy.max_n)
    return n if route.prompts is None else n * _prompts(body.get(route.prompts), route.prompts, policy)


def cap_output(body: dict[str, Any], route: Route, default_max_tokens: int, written: Written) -> None:
    """Write the default output cap where nothing caps the output; 0 is no default."""
    if not default_max_tokens or not route.output_caps:
        return
    for field in route.output_caps:
        if body.get(field) is not None:
            return
    field = route.output_caps[0]
    body[field] = default_max_tokens
    if written is not None:
        written[field] = "gateway"


def _n(body: Mapping[str, Any], max_n: int) -> int:
    if body.get("n") is None:
        return 1
    n = _whole(body["n"], "n")
    if not 1 <= n <= max_n:
        raise InvalidRequest(f"'n' must be from 1 to {max_n}; it is {quote(n)}.", param="n")
    return n


def _prompts(prompt: object, field: str, policy: Policy) -> int:
    """A list of strings or of token lists holds several prompts, a list of token ids is one."""
    if type(prompt) is not list or not prompt or type(prompt[0]) is int:
        return 1
    if len(prompt) > policy.max_prompts:
        raise InvalidRequest(
            f"'{field}' may list up to {policy.max_prompts} prompts; it lists {len(prompt)}.", param=field
        )
    return len(prompt)


def _check_logprobs(value: object, field: str, max_logprobs: int) -> None:
    if type(value) is bool and (max_logprobs or not value):
        return
    if type(value) is bool or not 0 <= _whole(value, field) <= max_logprobs:
        # The engine takes -1 for its whole vocabulary.
        raise InvalidRequest(
            f"'{field}' must be from 0 to {max_logprobs}; it is {quote(value)}.", param=field
        )


def _whole(value: object, field: str) -> int:
    """A whole number; 2.0 is one, as it is to the engine, but "2" is not: the caps would miss it."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise InvalidRequest(f"'{field}' must be a whole number; it is {quote(value)}.", param=field)
