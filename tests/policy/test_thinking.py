"""Thinking is one matter in several spellings: a caller's word in one counts in all, and so does a force."""

from typing import Any

import pytest

from gateway.settings import Model
from tests.policy.calls import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    WRITTEN_BY_US,
    key,
    model,
    prepare,
    sent,
)

KWARGS = "chat_template_kwargs"
OFF = {KWARGS: {"enable_thinking": False}}
ON = {KWARGS: {"enable_thinking": True}}
WORDS: list[dict[str, Any]] = [
    {"reasoning_effort": "high"},
    {"reasoning": {"effort": "high"}},
    {"output_config": {"effort": "high"}},
    {"thinking": {"type": "enabled", "budget_tokens": 2048}},
]


@pytest.mark.parametrize("route", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_caller_silences_the_default_switch(word: dict[str, Any], route: str) -> None:
    """The engine would let the default beat the caller."""
    body = sent(word, model(defaults=OFF), route=route)

    assert body.get(KWARGS, {}).get("enable_thinking") in (None, True)
    assert {name: value for name, value in body.items() if name != KWARGS} == word


@pytest.mark.parametrize("route", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize(
    "word",
    [
        {"reasoning_effort": None},
        {"reasoning": None},
        {"reasoning": {"effort": None, "summary": "auto"}},
        {"output_config": {"format": {"type": "json_schema"}}},
        {"thinking": None},
        {"thinking": {"type": None}},
        {KWARGS: {"enable_thinking": None, "thinking": None}},
    ],
)
def test_null_is_no_word(word: dict[str, Any], route: str) -> None:
    """A default applies as if nothing had been sent, and so do other fields of the same object."""
    assert sent(word, model(defaults=OFF), route=route)[KWARGS]["enable_thinking"] is False


@pytest.mark.parametrize(
    ("route", "word"),
    [
        (CHAT, {"reasoning_effort": "high"}),
        (CHAT, {"reasoning_effort": "none"}),
        (CHAT, {"reasoning_effort": "high", "thinking": {"type": "disabled"}}),
        (RESPONSES, {"reasoning": {"effort": "low"}}),
        (MESSAGES, {"output_config": {"effort": "max"}}),
        (MESSAGES, {"thinking": {"type": "disabled"}}),
        (MESSAGES, {"thinking": {"type": "enabled"}, "output_config": {"effort": "low"}}),
        (CHAT, {"reasoning_effort": 5}),
        (CHAT, {"thinking": {"type": "sometimes"}}),
        (CHAT, {"thinking": "yes"}),
    ],
)
def test_nothing_is_written_where_the_engine_acts_or_judges(route: str, word: dict[str, Any]) -> None:
    """vLLM hears these words itself; what makes no sense is left for it to refuse."""
    assert sent(word, model(defaults=OFF), route=route) == word


@pytest.mark.parametrize(
    ("route", "word", "thinks"),
    [
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, True),
        (MESSAGES, {"thinking": {"type": "adaptive"}}, True),
        ("/v1/messages/count_tokens", {"thinking": {"type": "enabled", "budget_tokens": 2048}}, True),
        (MESSAGES, {"reasoning_effort": "none"}, False),
        (CHAT, {"thinking": {"type": "enabled"}}, True),
        (CHAT, {"thinking": {"type": "disabled"}}, False),
        (CHAT, {"thinking": False}, False),
        (CHAT, {"reasoning": {"effort": "high"}}, True),
        (CHAT, {"reasoning": {"effort": "none"}}, False),
        (RESPONSES, {"reasoning_effort": "high"}, True),
    ],
)
@pytest.mark.parametrize("defaults", [{}, OFF, ON])
def test_the_switch_is_written_where_the_engine_would_not_act(
    route: str, word: dict[str, Any], thinks: bool, defaults: dict[str, Any]
) -> None:
    """The caller's word holds in another API's spelling, too; the word itself passes on."""
    assert sent(word, model(defaults=defaults), route=route) == {
        **word,
        KWARGS: {"enable_thinking": thinks},
    }


def test_the_callers_own_switch_is_never_rewritten() -> None:
    """Said explicitly it counts more than a word that the engine does not hear."""
    said = {"thinking": {"type": "enabled"}, KWARGS: {"enable_thinking": False}}

    assert sent(said, route=MESSAGES) == said


@pytest.mark.parametrize("name", ["enable_thinking", "thinking"])
@pytest.mark.parametrize("default", ["enable_thinking", "thinking"])
def test_the_two_names_in_the_kwargs_are_one_switch(name: str, default: str) -> None:
    """A caller who sets either silences defaults for both; other kwargs are filled in."""
    body = sent({KWARGS: {name: True}}, model(defaults={KWARGS: {default: False, "lang": "en"}}))

    assert body == {KWARGS: {name: True, "lang": "en"}}


def test_a_higher_default_silences_the_other_spelling_of_a_lower_one() -> None:
    """Key over variant over model, as for any default."""
    layered = model(defaults=OFF, variants={"v": {"defaults": {KWARGS: {"thinking": True}}}})

    assert sent({"model": "m:v"}, layered) == {KWARGS: {"thinking": True}}
    assert sent({"model": "m:v"}, layered, by=key(defaults={"reasoning_effort": "low"})) == {
        "reasoning_effort": "low"
    }


def test_how_much_to_think_may_be_a_default_beside_whether_to_think() -> None:
    """A default effort stays where the caller only turns thinking on."""
    assert sent({KWARGS: {"enable_thinking": True}}, model(defaults={"reasoning_effort": "low"})) == {
        KWARGS: {"enable_thinking": True},
        "reasoning_effort": "low",
    }


def test_a_word_of_the_caller_silences_a_default_word_in_another_spelling() -> None:
    """Here the engine would hear the default and not the caller."""
    assert sent({"thinking": {"type": "enabled"}}, model(defaults={"reasoning_effort": "none"})) == {
        "thinking": {"type": "enabled"},
        **ON,
    }


def test_a_default_fills_the_object_in_which_the_caller_spoke() -> None:
    """In one spelling it is a merge of objects like any other, also beside a second word."""
    said = {"reasoning_effort": "high", "thinking": {"type": "enabled"}}

    assert sent(said, model(defaults={"thinking": {"type": "disabled", "budget_tokens": 2048}})) == {
        "reasoning_effort": "high",
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }


BYPASSES: list[tuple[dict[str, Any], list[str]]] = [
    ({KWARGS: {"enable_thinking": True}}, []),
    ({KWARGS: {"thinking": True}}, [f"{KWARGS}.thinking"]),
    ({"reasoning_effort": "high"}, ["reasoning_effort"]),
    ({"reasoning": {"effort": "high"}}, ["reasoning.effort"]),
    ({"output_config": {"effort": "high"}}, ["output_config.effort"]),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, ["thinking"]),
    ({KWARGS: {"reasoning_effort": "high"}}, [f"{KWARGS}.reasoning_effort"]),
    ({KWARGS: {"thinking_effort": "high"}}, [f"{KWARGS}.thinking_effort"]),
    ({"thinking_token_budget": 100}, ["thinking_token_budget"]),
]


@pytest.mark.parametrize("route", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize(("said", "dropped"), BYPASSES)
def test_a_forced_switch_cannot_be_got_round(
    said: dict[str, Any], dropped: list[str], by_key: bool, route: str
) -> None:
    """The caller's words in other spellings are taken out and listed; the forced one is what is left."""
    forced = model() if by_key else model(force=OFF)
    prepared = prepare(said, forced, by=key(force=OFF) if by_key else None, route=route)

    assert prepared.body == {"model": "m", **OFF, **WRITTEN_BY_US.get(route, {})}
    assert prepared.dropped == tuple(dropped)


def test_a_forced_switch_leaves_the_callers_other_fields_alone() -> None:
    """Names that are no spelling of the switch survive, in the kwargs and around them."""
    said = {
        "enable_thinking": True,
        "reasoning": {"effort": "high", "summary": "auto"},
        KWARGS: {"thinking": True, "thinking_mode": "on", "foo": 1},
    }

    assert sent(said, model(force=OFF)) == {
        "enable_thinking": True,
        "reasoning": {"summary": "auto"},
        KWARGS: {"enable_thinking": False, "thinking_mode": "on", "foo": 1},
    }


@pytest.mark.parametrize(
    "force",
    [{"reasoning_effort": "none"}, {KWARGS: {"thinking": False}}, {"output_config": {"effort": "none"}}],
)
@pytest.mark.parametrize("said", [said for said, _ in BYPASSES])
def test_force_holds_in_whichever_spelling_it_is_written(force: dict[str, Any], said: dict[str, Any]) -> None:
    """Nothing that the caller said on thinking is left; the switch is written where the engine is deaf."""
    written = sent(said, model(force=force))

    assert written in (force, {**force, **OFF})


def test_a_force_that_the_engine_would_not_hear_is_written_as_the_switch() -> None:
    """Forced for another API's spelling, it holds on this route, too."""
    assert sent({KWARGS: {"enable_thinking": True}}, model(force={"thinking": {"type": "disabled"}})) == {
        "thinking": {"type": "disabled"},
        **OFF,
    }


def test_the_models_force_decides_over_the_keys() -> None:
    """Also where they spell it differently; what was the caller's is listed once."""
    said = {KWARGS: {"thinking": True}, "reasoning_effort": "high"}
    prepared = prepare(said, model(force=OFF), by=key(force={"reasoning_effort": "low"}))

    assert prepared.body == {"model": "m", **OFF}
    assert sorted(prepared.dropped) == [f"{KWARGS}.thinking", "reasoning_effort"]


def test_force_beats_defaults_in_other_spellings() -> None:
    """A default is not the caller's: it is not listed as dropped."""
    prepared = prepare({}, model(defaults={"reasoning_effort": "high"}, force=OFF))

    assert prepared.body == {"model": "m", **OFF}
    assert prepared.dropped == ()


def test_routes_without_a_template_are_left_alone() -> None:
    """There is nothing to think with."""
    assert sent({"reasoning_effort": "high"}, model(force=OFF), route=COMPLETIONS) == {
        "reasoning_effort": "high"
    }


@pytest.mark.parametrize(
    ("said", "of_model", "expected"),
    [
        ({"max_tokens": 9}, model(defaults={"max_completion_tokens": 5}), {"max_tokens": 9}),
        ({"max_completion_tokens": 9}, model(defaults={"max_tokens": 5}), {"max_completion_tokens": 9}),
        ({"max_tokens": None}, model(defaults={"max_tokens": 5}), {"max_tokens": 5}),
        ({"max_completion_tokens": 9}, model(force={"max_tokens": 5}), {"max_tokens": 5}),
        ({"max_tokens": 9}, model(force={"max_completion_tokens": 5}), {"max_completion_tokens": 5}),
    ],
)
def test_the_two_output_caps_of_chat_are_one_matter(
    said: dict[str, Any], of_model: Model, expected: dict[str, Any]
) -> None:
    """vLLM lets `max_completion_tokens` beat `max_tokens`, whoever set it."""
    assert sent(said, of_model) == expected


@pytest.mark.parametrize("route", [COMPLETIONS, MESSAGES])
def test_other_routes_know_one_output_cap(route: str) -> None:
    """There a forced cap of chat takes nothing away."""
    forced = model(force={"max_completion_tokens": 5})

    assert sent({"max_tokens": 9}, forced, route=route)["max_tokens"] == 9
