"""Who wins: model defaults < variant defaults < key defaults < the caller < key force < model force."""

import copy
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy import Catalogue, apply, explain
from gateway.settings import Policy
from tests.policy.calls import CHAT, COMPLETIONS, HELLO, key, model, prepare, sent

LAYERS = ("model.defaults", "variant.defaults", "key.defaults", "caller", "key.force", "model.force")
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.integers(0, 9),
        "user": st.lists(st.integers(0, 9), max_size=2),
        "chat_template_kwargs": st.fixed_dictionaries(
            {"lang": st.integers(0, 9)}, optional={"deep": st.fixed_dictionaries({"er": st.integers(0, 9)})}
        ),
    },
)
WITH_NULLS = st.recursive(
    st.none() | st.integers(0, 9),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    max_leaves=8,
)
CALLERS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.none() | st.integers(0, 9),
        "user": st.none() | st.lists(st.integers(0, 9), max_size=2),
        "chat_template_kwargs": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "lang": st.none() | st.integers(0, 9),
                "deep": st.none() | st.fixed_dictionaries({"er": st.none() | st.integers(0, 9)}),
            },
        ),
        "metadata": WITH_NULLS,
    },
)


def test_defaults_lose_key_by_key_and_wipe_nothing() -> None:
    """The caller's word wins over a default, beside it the default and the caller's other kwargs stay."""
    qwen = model(defaults={"chat_template_kwargs": {"enable_thinking": False, "lang": "en"}})

    assert sent({"chat_template_kwargs": {"enable_thinking": True, "foo": 1}}, qwen) == {
        "chat_template_kwargs": {"enable_thinking": True, "lang": "en", "foo": 1}
    }
    assert sent({}, qwen) == {"chat_template_kwargs": {"enable_thinking": False, "lang": "en"}}


@pytest.mark.parametrize(
    "said",
    [
        {"chat_template_kwargs": None},
        {"chat_template_kwargs": {}},
        {"chat_template_kwargs": {"lang": None}},
        {"chat_template_kwargs": {"lang": None, "deep": None}},
        {"chat_template_kwargs": {"deep": {"er": None}}},
    ],
)
def test_null_is_silence_at_any_depth(said: dict[str, Any]) -> None:
    """A default fills it."""
    kwargs = {"lang": "en", "deep": {"er": 1}}

    assert sent(said, model(defaults={"chat_template_kwargs": kwargs})) == {"chat_template_kwargs": kwargs}


@pytest.mark.parametrize("said", [{"temperature": None}, {"chat_template_kwargs": None}, {"a": {"b": None}}])
def test_null_passes_where_no_default_applies(said: dict[str, Any]) -> None:
    """What the gateway does not fill it does not judge."""
    assert sent(said) == said


@pytest.mark.parametrize("defaults", [{}, {"chat_template_kwargs": {}}, {"chat_template_kwargs": {"a": {}}}])
def test_template_kwargs_are_not_added_empty(defaults: dict[str, Any]) -> None:
    """Engines with a Mistral tokenizer refuse every request that has the field, even `{}`."""
    assert sent({"messages": HELLO}, model(defaults=defaults)) == {"messages": HELLO}


def test_template_kwargs_that_lose_all_they_hold_go_too() -> None:
    """Nor is it left empty by what is dropped."""
    assert sent({"chat_template_kwargs": {"chat_template": "x"}}) == {}


@pytest.mark.parametrize("route", [COMPLETIONS, "/v1/embeddings", "/v1/audio/transcriptions"])
def test_template_kwargs_stay_off_routes_without_a_template(route: str) -> None:
    """Neither defaults nor force put them there."""
    kwargs = {"chat_template_kwargs": {"enable_thinking": False}}
    caller = key(defaults=kwargs, force=kwargs)

    assert "chat_template_kwargs" not in sent(
        {}, model(defaults=kwargs, force=kwargs), route=route, by=caller
    )


def test_other_defaults_apply_where_tokens_are_made() -> None:
    """Completions get the temperature, embeddings do not."""
    warm = model(defaults={"temperature": 0.7})

    assert sent({"prompt": "x"}, warm, route=COMPLETIONS) == {"prompt": "x", "temperature": 0.7}
    assert sent({"input": "x"}, warm, route="/v1/embeddings") == {"input": "x"}


def test_unknown_fields_pass_unchanged() -> None:
    """Values, nesting and order of arrays stay; integers stay integers and 1.0 stays 1.0."""
    body = {
        "top_k": 5,
        "min_p": 1.0,
        "structured_outputs": {"json": {"b": 1, "a": [3, 1, 2]}},
        "guided_json": None,
        "zzz_future": {"a": [1, {"b": 1.0}]},
        "messages": HELLO,
    }
    expected = orjson.dumps(body | {"model": "m"})

    assert orjson.dumps(prepare(body).body) == expected


def test_a_caller_of_another_type_wins_over_a_default() -> None:
    """An object does not creep into a scalar or the other way round; the engine judges what was sent."""
    defaults = {"metadata": {"a": 1}, "user": "x"}

    assert sent({"metadata": 5, "user": {"b": 2}}, model(defaults=defaults)) == {
        "metadata": 5,
        "user": {"b": 2},
    }


def test_force_wins_over_any_type() -> None:
    """An object in force replaces a scalar, and merges with an object."""
    forced = model(force={"metadata": {"a": 1}, "temperature": 0, "user": "x"})

    assert sent({"metadata": 5, "temperature": {"x": 1}}, forced) == {
        "metadata": {"a": 1},
        "temperature": 0,
        "user": "x",
    }
    assert sent({"metadata": {"a": 2, "b": 2}}, forced)["metadata"] == {"a": 1, "b": 2}


def test_a_null_in_a_keys_force_is_written() -> None:
    """It is how an operator takes a field away from callers."""
    assert sent({"logit_bias": {"1": 5}}, by=key(force={"logit_bias": None})) == {"logit_bias": None}


def test_the_engine_gets_its_own_name_of_the_model() -> None:
    """Aliases and variants are names of ours."""
    named = model("m", aliases=("a",), engine_model="served", variants={"v": {"defaults": {}}})

    for name in ("m", "a", "m:v", None):
        assert prepare({"model": name}, named).body == {"model": "served"}
    assert prepare({}).body == {"model": "m"}


@given(layers=st.fixed_dictionaries(dict.fromkeys(set(LAYERS) - {"caller"}, OBJECTS)), caller=CALLERS)
def test_every_leaf_comes_from_the_highest_layer_that_speaks(
    layers: dict[str, dict[str, Any]], caller: dict[str, Any]
) -> None:
    """And `explain` names that layer, for each leaf of exactly the body that `apply` gives."""
    of_model = model(
        defaults=layers["model.defaults"],
        variants={"v": {"defaults": layers["variant.defaults"]}},
        force=layers["model.force"],
    )
    of_key = key(defaults=layers["key.defaults"], force=layers["key.force"])
    said = {"model": "m:v", "messages": HELLO, **caller}
    target = Catalogue([of_model]).find("m:v", of_key)
    spoken = {**layers, "caller": said}

    body = apply(copy.deepcopy(said), route=CHAT, target=target, key=of_key, policy=Policy()).body
    explained = explain(copy.deepcopy(said), route=CHAT, target=target, key=of_key, policy=Policy())

    assert explained.body == body
    assert explained.sources["model"] == "gateway"
    assert explained.sources.keys() == {".".join(path) for path in leaves(body)}
    for path in leaves(body):
        if path == ("model",):
            continue
        speakers = [name for name in LAYERS if at(spoken[name], path) is not None]
        assert at(body, path) == (at(spoken[speakers[-1]], path) if speakers else at(said, path))
        assert explained.sources[".".join(path)] == (speakers[-1] if speakers else "caller")


def leaves(value: Mapping[str, Any]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, item in value.items():
        found += [(name, *path) for path in leaves(item)] if isinstance(item, dict) and item else [(name,)]
    return found


def at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@given(defaults=OBJECTS, force=OBJECTS, caller=CALLERS)
def test_nothing_of_one_call_reaches_the_next(
    defaults: dict[str, Any], force: dict[str, Any], caller: dict[str, Any]
) -> None:
    """However the engine's body is changed afterwards, defaults and force stay as they were configured."""
    of_model, of_key = model(defaults=defaults, force=force), key(defaults=defaults, force=force)
    before = copy.deepcopy((of_model, of_key))

    spoil(prepare(caller, of_model, by=of_key).body)

    assert (of_model, of_key) == before


def spoil(value: Any) -> None:
    """Change every object and list in a value."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")


def test_fifty_calls_at_once_do_not_meet() -> None:
    """What one caller adds to shared defaults never shows in the body of another."""
    qwen = model(
        defaults={"chat_template_kwargs": {"lang": "en"}, "stop": ["a"]}, force={"metadata": {"team": "x"}}
    )

    def call(number: int) -> dict[str, Any]:
        body: dict[str, Any] = {"chat_template_kwargs": {"foo": number}} if number % 2 else {}
        return sent(body, qwen)

    with ThreadPoolExecutor(50) as pool:
        bodies = list(pool.map(call, range(50)))

    for number, body in enumerate(bodies):
        foo = {"foo": number} if number % 2 else {}
        assert body["chat_template_kwargs"] == {"lang": "en", **foo}
