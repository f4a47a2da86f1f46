"""Engines other than vLLM get no field that vLLM alone knows, whoever wrote it."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.policy import Target, explain
from gateway.policy.foreign import OF_VLLM_ALONE
from gateway.settings import Policy
from tests.policy.calls import (
    AUDIO,
    CHAT,
    COMPLETIONS,
    HELLO,
    MESSAGES,
    RESPONSES,
    WRITTEN_BY_US,
    key,
    model,
    prepare,
    sent,
)

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
    """It reads `n_predict` before the route's own field, so a force takes it out; a default gives way."""
    prepared = prepare({"n_predict": -1}, model(kind="openai", force={cap: 8}), route=route)

    assert prepared.body[cap] == 8
    assert prepared.dropped == ("n_predict",)
    assert prepare({"n_predict": 5}, model(kind="openai", defaults={cap: 8}), route=route).body[cap] == 5


@pytest.mark.parametrize(
    ("route", "cap"),
    [
        (CHAT, "max_tokens"),
        (COMPLETIONS, "max_tokens"),
        (RESPONSES, "max_output_tokens"),
        (MESSAGES, "max_tokens"),
    ],
)
def test_llama_cpps_name_of_the_output_cap_is_sent_as_the_routes_own(route: str, cap: str) -> None:
    """So that limits see it and any engine obeys it; it beats caps beside it, and keeps the default away."""
    other, capped = model(kind="openai"), Policy(default_max_tokens=100)
    given = {"n_predict": 4000, cap: 1}
    if route == CHAT:
        given["max_completion_tokens"] = 2

    prepared = prepare(given, other, route=route, policy=capped)

    assert prepared.body == {"model": "m", cap: 4000, **WRITTEN_BY_US.get(route, {})}
    assert prepared.dropped == ()
    assert sent({"n_predict": 2.0}, other, route=route) == {cap: 2.0}


def test_what_is_no_cap_leaves_the_others() -> None:
    """Less than nothing asks for no end: the caller's cap or the default holds, and it is told."""
    other, capped = model(kind="openai"), Policy(default_max_tokens=100)

    assert sent({"n_predict": -1}, other, policy=capped) == {"max_completion_tokens": 100}
    assert sent({"n_predict": -2, "max_tokens": 7}, other, policy=capped) == {"max_tokens": 7}
    assert sent({"n_predict": None, "max_tokens": 7}, other) == {"max_tokens": 7}
    assert prepare({"n_predict": -1}, other).dropped == ("n_predict",)
    assert prepare({"n_predict": "5"}, other, route=AUDIO).dropped == ("n_predict",)


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_predict", "5"), ("n_predict", 0), ("n_predict", True), ("n_cmpl", 9), ("n_cmpl", "2")],
)
def test_they_are_judged_by_the_name_that_was_sent(field: str, value: Any) -> None:
    """As the names of the route are."""
    with pytest.raises(InvalidRequest) as error:
        prepare({field: value}, model(kind="openai"))
    assert error.value.param == field


def test_llama_cpps_name_of_n_is_sent_as_n() -> None:
    """Which it beats; so many choices are reserved for, and must finish before a stream is whole."""
    prepared = prepare({"n_cmpl": 4, "n": 2}, model(kind="openai"))

    assert (prepared.body, prepared.choices) == ({"model": "m", "n": 4}, 4)


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES, AUDIO])
def test_n_is_not_sent_where_an_answer_is_one(route: str) -> None:
    """llama.cpp makes a chat of such a request, and would make as many there."""
    prepared = prepare({"n_cmpl": 4, "n": 2}, model(kind="openai"), route=route)

    assert prepared.body == {"model": "m", **WRITTEN_BY_US.get(route, {})}
    assert (prepared.dropped, prepared.choices) == (("n_cmpl", "n"), 1)


def test_who_wrote_a_cap_is_told_by_its_new_name() -> None:
    """A force stays a force, not the caller's whose field it took."""
    forced = Target.of(model(kind="openai", force={"n_predict": 5}))
    explained = explain(
        {"max_tokens": 900},
        route=COMPLETIONS,
        target=forced,
        key=key(),
        policy=Policy(default_max_tokens=100),
    )

    assert explained.body["max_tokens"] == 5
    assert explained.sources == {"max_tokens": "model.force", "model": "gateway"}


def test_vllm_gets_those_names_as_they_came() -> None:
    """It ignores them."""
    assert sent({"n_predict": -1, "n_cmpl": 2, "max_tokens": 5}) == {
        "n_predict": -1,
        "n_cmpl": 2,
        "max_tokens": 5,
    }


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
