"""How much one request may ask for, and for how many choices.

Only fields that the gateway itself relies on are judged; all others are the engine's to judge.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.errors import InvalidRequest, quote
from gateway.policy.merge import Written
from gateway.policy.spellings import N_PREDICT, remove
from gateway.routes import Route
from gateway.settings import Policy

_LOGPROBS = ("logprobs", "top_logprobs", "prompt_logprobs")
_TOKENS_FOR_LOGPROBS = "logprob_token_ids"  # so many log probabilities for each token, chosen by id
# llama.cpp's name of n, and what older engines generate before they choose n of it.
_AS_MANY = ("best_of", "n_cmpl")
_NS = ("n_cmpl", "n")
_OF_LLAMA_CPP = frozenset({*_NS, *N_PREDICT})
_PAIRED = ("text_1", "text_2", "queries", "documents", "items", "data_1", "data_2")
_SCORE = "/v1/score"
_CONVERSATIONS = ("input", "messages")  # a document with a role is a document


def choices(body: Mapping[str, Any], route: Route, policy: Policy) -> int:
    """How many choices the answer will have: n for each prompt, where engines read it.

    Raises InvalidRequest for a field of a wrong type and for more than the policy allows.
    """
    prompts = _prompts(body, route, policy.max_prompts)
    if not route.generates:
        return 1
    for field in _LOGPROBS:
        if body.get(field) is not None:
            _check_logprobs(body[field], field, policy.max_logprobs)
    if type(body.get(_TOKENS_FOR_LOGPROBS)) is list:
        _check_logprobs(len(body[_TOKENS_FOR_LOGPROBS]), _TOKENS_FOR_LOGPROBS, policy.max_logprobs)
    for field in route.output_caps:
        if body.get(field) is not None:
            _check_output(body, field)
    for field in _AS_MANY:
        _n(body, field, policy.max_n)
    n = _n(body, "n", policy.max_n)
    return prompts * n if _has_choices(route) else prompts


def own_names(body: dict[str, Any], route: Route, policy: Policy, written: Written) -> list[str]:
    """Write llama.cpp's `n_predict` and `n_cmpl` as the route's own cap and n, which they beat there.

    By those names limits see them, and any other engine does. Answers what cannot be said so.
    Raises InvalidRequest, by the name that was sent.
    """
    if not route.generates or _OF_LLAMA_CPP.isdisjoint(body):
        return []
    for field in _NS:
        _n(body, field, policy.max_n)
    if not _has_choices(route):  # llama.cpp makes a chat of it, and would make as many there
        return remove(body, ((field,) for field in _NS)) + _own_cap(body, route, written)
    _rename(body, "n_cmpl", ("n",), written)
    return _own_cap(body, route, written)


def _own_cap(body: dict[str, Any], route: Route, written: Written) -> list[str]:
    """Less than nothing asks for no cap, which is the same as none."""
    field = N_PREDICT[0]
    if body.get(field) is not None:
        if route.body == "form" or _whole(body[field], field) < 0:
            return remove(body, (N_PREDICT,))
        _check_output(body, field)
    _rename(body, field, route.output_caps, written)
    return []


def _rename(body: dict[str, Any], name: str, fields: Sequence[str], written: Written) -> None:
    """Put what `name` says in the place of `fields`, under the last of them, which the most engines know."""
    value = body.pop(name, None)
    if value is None:
        return
    for field in fields:
        body.pop(field, None)
    body[fields[-1]] = value
    if written is not None:
        for field in fields:
            written.pop(field, None)
        if name in written:
            written[fields[-1]] = written.pop(name)


def _has_choices(route: Route) -> bool:
    """Whether engines read `n`: vLLM ignores it elsewhere, and to audio it is the width of a beam search."""
    return route.dialect == "openai" and route.body == "json"


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


def _check_output(body: Mapping[str, Any], field: str) -> None:
    """At least one token: an engine's own words on less would be those on a prompt that fills the context.

    None at all is sense with `echo` alone, which asks for the prompt and what the engine thinks of it.
    """
    cap = _whole(body[field], field)
    if cap < 1 and not (cap == 0 and body.get("echo")):
        raise InvalidRequest(f"'{field}' must be at least 1; it is {quote(cap)}.", param=field)


def _n(body: Mapping[str, Any], field: str, most: int) -> int:
    if body.get(field) is None:
        return 1
    n = _whole(body[field], field)
    if not 1 <= n <= most:
        raise InvalidRequest(f"'{field}' must be from 1 to {most}; it is {quote(n)}.", param=field)
    return n


def _prompts(body: Mapping[str, Any], route: Route, most: int) -> int:
    """How many prompts there are. Texts to score are counted on each side: the longer one makes the pairs."""
    if route.template == _SCORE:
        return max(_listed(body.get(field), field, most) for field in _PAIRED)
    if route.prompts is None:
        return 1
    prompts = _listed(body.get(route.prompts), route.prompts, most)
    if route.embeds and type(body.get("messages")) is list:
        return max(prompts, _listed(body["messages"], "messages", most))
    return prompts


def _listed(prompt: object, field: str, most: int) -> int:
    """A list of texts or of lists holds several prompts, a list of token ids or of messages is one."""
    if type(prompt) is not list or not prompt or type(prompt[0]) is int:
        return 1
    if field in _CONVERSATIONS and type(prompt[0]) is dict and "role" in prompt[0]:
        return 1
    if len(prompt) > most:
        raise InvalidRequest(f"'{field}' may list up to {most} prompts; it lists {len(prompt)}.", param=field)
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
