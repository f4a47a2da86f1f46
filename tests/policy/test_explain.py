"""Who set what: `explain` answers as `apply` does, with the source of each leaf."""

import copy

from gateway.policy import Catalogue, apply, explain
from gateway.settings import Policy
from tests.policy.calls import CHAT, HELLO, MESSAGES, key, model

QWEN = model(
    "qwen",
    engine_model="served",
    defaults={"temperature": 0.7, "chat_template_kwargs": {"enable_thinking": False, "lang": "en"}},
    force={"seed": 1},
    variants={"thinking": {"defaults": {"chat_template_kwargs": {"enable_thinking": True}}}},
)
OF_TEAM = key(defaults={"top_p": 0.9}, force={"metadata": {"team": "x"}})


def test_every_source_has_its_name() -> None:
    """All seven, each where it was the one that counted."""
    body = {
        "model": "qwen:thinking",
        "messages": HELLO,
        "stream": True,
        "priority": 1,
        "metadata": {"team": "y", "job": "z"},
        "chat_template_kwargs": {"lang": None},
    }
    target = Catalogue([QWEN]).find("qwen:thinking", OF_TEAM)

    explained = explain(body, route=CHAT, target=target, key=OF_TEAM, policy=Policy(default_max_tokens=10))

    assert explained.sources == {
        "model": "gateway",
        "messages": "caller",
        "stream": "caller",
        "stream_options.include_usage": "gateway",
        "max_completion_tokens": "gateway",
        "metadata.team": "key.force",
        "metadata.job": "caller",
        "seed": "model.force",
        "top_p": "key.defaults",
        "temperature": "model.defaults",
        "chat_template_kwargs.lang": "model.defaults",
        "chat_template_kwargs.enable_thinking": "variant.defaults",
    }
    assert explained.dropped == ("priority",)


def test_a_switch_that_the_gateway_wrote_is_its_own() -> None:
    """Where the caller's word on thinking had to be spelt out for the engine."""
    body = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "messages": HELLO}
    target = Catalogue([QWEN]).find("qwen", OF_TEAM)

    explained = explain(body, route=MESSAGES, target=target, key=OF_TEAM, policy=Policy())

    assert explained.body["chat_template_kwargs"] == {"enable_thinking": True, "lang": "en"}
    assert explained.sources["chat_template_kwargs.enable_thinking"] == "gateway"
    assert explained.sources["thinking.type"] == "caller"


def test_a_forced_word_hides_the_callers() -> None:
    """The forced switch is the force's, and the dropped word has no source."""
    off = model(force={"chat_template_kwargs": {"enable_thinking": False}})
    target = Catalogue([off]).find("m", key())

    explained = explain({"reasoning_effort": "high"}, route=CHAT, target=target, key=key(), policy=Policy())

    assert explained.sources == {"model": "gateway", "chat_template_kwargs.enable_thinking": "model.force"}
    assert explained.dropped == ("reasoning_effort",)


def test_a_call_that_is_not_explained_has_no_sources() -> None:
    """They cost time, and nobody reads them; all else is the same."""
    target = Catalogue([QWEN]).find("qwen", OF_TEAM)
    body = {"model": "qwen", "messages": HELLO, "n": 2}

    applied = apply(copy.deepcopy(body), route=CHAT, target=target, key=OF_TEAM, policy=Policy())
    explained = explain(copy.deepcopy(body), route=CHAT, target=target, key=OF_TEAM, policy=Policy())

    assert applied.sources == {}
    assert (applied.body, applied.choices, applied.dropped) == (
        explained.body,
        explained.choices,
        explained.dropped,
    )
