"""How much to think, where templates read it; and models whose tokenizer takes no kwargs at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.spellings import THINKING
from gateway.policy.spellings import said as is_said
from tests.policy.calls import CHAT, MESSAGES, RESPONSES, key, model, prepare, sent

KWARGS = "chat_template_kwargs"
OFF = {KWARGS: {"enable_thinking": False}}
ON = {KWARGS: {"enable_thinking": True}}


def test_forced_thinking_cannot_be_starved() -> None:
    """A budget of no tokens, or an effort that a renderer lets beat the switch, would end it."""
    for said in ({"thinking_token_budget": 0}, {KWARGS: {"reasoning_effort": "none"}}):
        assert sent(said, model(force=ON)) == ON


def test_a_forced_budget_decides_on_nothing_else() -> None:
    """How much to think is not whether to think."""
    said = {KWARGS: {"enable_thinking": True}, "thinking_token_budget": 9000}

    assert sent(said, model(force={"thinking_token_budget": 100})) == {**said, "thinking_token_budget": 100}


@pytest.mark.parametrize(
    ("said", "default"),
    [
        ({KWARGS: {"reasoning_effort": "low"}}, {"reasoning_effort": "high"}),
        ({"reasoning_effort": "low"}, {KWARGS: {"reasoning_effort": "high"}}),
    ],
)
def test_an_effort_in_the_kwargs_is_an_effort(said: dict[str, Any], default: dict[str, Any]) -> None:
    """vLLM hands both to the template and lets one of them win: the caller's must be the only one."""
    assert sent(said, model(defaults=default)) == said


def test_a_forced_effort_is_the_only_one() -> None:
    """In whichever of the two places it is forced."""
    inner, outer = {KWARGS: {"reasoning_effort": "low"}}, {"reasoning_effort": "low"}

    assert sent({"reasoning_effort": "high"}, model(force=inner)) == inner
    assert sent({KWARGS: {"reasoning_effort": "high"}}, model(force=outer)) == outer


@pytest.mark.parametrize("route", [CHAT, MESSAGES, "/v1/messages/count_tokens", "/tokenize"])
def test_a_model_whose_tokenizer_takes_no_kwargs_gets_none(route: str) -> None:
    """Neither the caller's, nor a key's, nor the gateway's own switch; the word itself stays."""
    mistral = model(template_kwargs=False)
    said = {"thinking": {"type": "enabled"}, KWARGS: {"lang": "en"}}

    prepared = prepare(said, mistral, by=key(defaults=OFF, force={KWARGS: {"a": 1}}), route=route)

    assert prepared.body == {"model": "m", "thinking": {"type": "enabled"}}
    assert prepared.dropped == (KWARGS,)


def test_a_force_in_kwargs_that_are_not_sent_is_written_nowhere_else() -> None:
    """The caller's words are still taken out: the operator meant to decide."""
    prepared = prepare({"reasoning_effort": "high"}, model(template_kwargs=False, force=OFF))

    assert prepared.body == {"model": "m"}
    assert set(prepared.dropped) == {"reasoning_effort", KWARGS}


EFFORTS = st.sampled_from(["none", "low", "high"])
CALLERS = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_effort": EFFORTS,
        "reasoning": st.fixed_dictionaries({}, optional={"effort": EFFORTS, "summary": st.just("auto")}),
        "output_config": st.fixed_dictionaries({}, optional={"effort": EFFORTS}),
        "thinking": st.booleans() | st.fixed_dictionaries({"type": st.sampled_from(["enabled", "disabled"])}),
        "thinking_token_budget": st.integers(0, 9),
        KWARGS: st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "enable_thinking": st.booleans(),
                "thinking": st.booleans(),
                "reasoning_effort": EFFORTS,
                "thinking_effort": EFFORTS,
                "lang": st.just("en"),
            },
        ),
    },
)


@given(caller=CALLERS, on=st.booleans(), route=st.sampled_from([CHAT, RESPONSES, MESSAGES]))
def test_no_mixture_of_words_gets_round_a_force(caller: dict[str, Any], on: bool, route: str) -> None:
    """The forced switch is then the only word on thinking in the body; what is no word on it survives."""
    body = sent(caller, model(force=ON if on else OFF), route=route)

    words = [path for path in (*THINKING.spellings, *THINKING.beside) if is_said(body, path)]
    assert words == [(KWARGS, "enable_thinking")]
    assert body[KWARGS]["enable_thinking"] is on
    assert body[KWARGS].get("lang") == (caller.get(KWARGS) or {}).get("lang")
    assert body.get("reasoning", {}).get("summary") == caller.get("reasoning", {}).get("summary")


@given(caller=CALLERS, on=st.booleans(), route=st.sampled_from([CHAT, RESPONSES, MESSAGES]))
def test_no_default_changes_a_word_of_the_callers(caller: dict[str, Any], on: bool, route: str) -> None:
    """Each arrives as it was said; the default switch stands only where no other word does."""
    body = sent(caller, model(defaults=ON if on else OFF), route=route)

    words = {path for path in THINKING.spellings if is_said(caller, path)}
    for path in words:
        at = body[path[0]] if len(path) == 1 else body[path[0]][path[1]]
        assert at == (caller[path[0]] if len(path) == 1 else caller[path[0]][path[1]])
    if not words:
        assert body[KWARGS]["enable_thinking"] is on
