"""Engines other than vLLM get no field that vLLM alone knows, whoever wrote it."""

from typing import Any

import pytest

from gateway.policy.foreign import OF_VLLM_ALONE
from tests.policy.calls import CHAT, COMPLETIONS, HELLO, RESPONSES, key, model, prepare, sent

UNDERSTOOD = {
    "messages": HELLO,
    "chat_template_kwargs": {"enable_thinking": False},
    "top_k": 40,
    "min_p": 0.05,
    "repeat_penalty": 1.1,
    "repetition_penalty": 1.1,
    "response_format": {"type": "json_object"},
    "json_schema": {"type": "object"},
    "grammar": "root ::= [0-9]",
    "stop_token_ids": [1],
    "cache_prompt": True,
    "zzz_future": {"a": [1, 1.0]},
}
FORBIDDEN = {"priority", "cache_salt", "request_id", "session_id", "kv_transfer_params", "ec_transfer_params"}


@pytest.mark.parametrize("field", OF_VLLM_ALONE)
@pytest.mark.parametrize("route", ["/v1/chat/completions", COMPLETIONS])
def test_a_field_of_vllms_own_is_not_sent_and_listed(field: str, route: str) -> None:
    """Neither the caller's nor that of defaults or force."""
    other = model(kind="openai")
    value: Any = {"json": {}} if field == "structured_outputs" else 1

    assert prepare({field: value, "user": "x"}, other, route=route).body == {"model": "m", "user": "x"}
    assert prepare({field: value}, other, route=route).dropped == (field,)


def test_neither_are_those_of_the_operator() -> None:
    """A default that serves vLLM well would be refused by another engine; it is listed, too."""
    layered = model(kind="openai", defaults={"bad_words": ["x"]}, force={"structured_outputs": {"json": {}}})
    prepared = prepare({"vllm_xargs": 1}, layered, by=key(force={"vllm_xargs": {"a": 1}}))

    assert prepared.body == {"model": "m"}
    assert sorted(prepared.dropped) == ["bad_words", "structured_outputs", "vllm_xargs"]


def test_what_others_understand_is_sent() -> None:
    """llama.cpp's names, those that it shares with vLLM, and those that nobody knows yet."""
    assert sent(UNDERSTOOD, model(kind="openai")) == UNDERSTOOD


@pytest.mark.parametrize(
    ("route", "cap"), [(CHAT, "max_tokens"), (COMPLETIONS, "max_tokens"), (RESPONSES, "max_output_tokens")]
)
def test_a_forced_output_cap_is_not_got_round_by_llama_cpps_name_for_it(route: str, cap: str) -> None:
    """It reads `n_predict` before the route's own field, so a force takes it out; a default does not."""
    prepared = prepare({"n_predict": -1}, model(kind="openai", force={cap: 8}), route=route)

    assert prepared.body[cap] == 8
    assert prepared.dropped == ("n_predict",)
    assert sent({"n_predict": 5}, model(kind="openai", defaults={cap: 8}), route=route)["n_predict"] == 5


def test_vllm_gets_its_own() -> None:
    """All but what callers may never set."""
    body = {
        field: 1
        for field in OF_VLLM_ALONE
        if field in ("include_reasoning", "return_token_ids", "length_penalty")
    }

    assert sent(body) == body


def test_each_field_has_its_reason() -> None:
    """The list is data that an operator can read."""
    assert all(OF_VLLM_ALONE.values())
    assert OF_VLLM_ALONE.keys() >= FORBIDDEN
