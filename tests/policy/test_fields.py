"""What callers may not set, what must have a right type, and how much one request may ask for."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.settings import Policy
from tests.policy.calls import CHAT, COMPLETIONS, MESSAGES, RESPONSES, key, model, prepare, sent

FORBIDDEN = [
    "priority",
    "cache_salt",
    "kv_transfer_params",
    "request_id",
    "vllm_xargs",
    "mm_processor_kwargs",
    "prompt_embeds",
    "chat_template",
]


def refused(body: dict[str, Any], *, route: str = CHAT, policy: Policy | None = None) -> str | None:
    """The `param` of the 400 that a body meets."""
    with pytest.raises(InvalidRequest) as error:
        prepare(body, route=route, policy=policy)
    assert error.value.status == 400
    return error.value.param


@pytest.mark.parametrize("route", [CHAT, COMPLETIONS, "/v1/embeddings"])
@pytest.mark.parametrize("field", FORBIDDEN)
@pytest.mark.parametrize("value", [1, {"a": 1}, None])
def test_forbidden_fields_are_dropped_and_listed(route: str, field: str, value: Any) -> None:
    """On every route, whatever they hold."""
    prepared = prepare({field: value, "user": "x"}, route=route)

    assert prepared.body == {"model": "m", "user": "x"}
    assert prepared.dropped == (field,)


@pytest.mark.parametrize("name", ["chat_template", "tokenize"])
def test_kwargs_of_the_renderer_are_dropped_and_listed(name: str) -> None:
    """Also where the model allows a template of the caller's: that is another field."""
    said = {"chat_template_kwargs": {name: "x", "lang": "en"}}

    prepared = prepare(said, model(allow_chat_template=True))

    assert prepared.body == {"model": "m", "chat_template_kwargs": {"lang": "en"}}
    assert prepared.dropped == (f"chat_template_kwargs.{name}",)


def test_a_model_can_allow_a_template_of_the_callers() -> None:
    """By `allow_chat_template`."""
    prepared = prepare({"chat_template": "{{ x }}"}, model(allow_chat_template=True))

    assert prepared.body == {"model": "m", "chat_template": "{{ x }}"}
    assert prepared.dropped == ()


def test_operators_may_set_what_callers_may_not() -> None:
    """Dropped is what the caller sent, before defaults and force are applied."""
    prepared = prepare(
        {"priority": 9}, model(defaults={"priority": 1}), by=key(force={"vllm_xargs": {"a": 1}})
    )

    assert prepared.body == {"model": "m", "priority": 1, "vllm_xargs": {"a": 1}}
    assert prepared.dropped == ("priority",)


@pytest.mark.parametrize("value", [[1], "x", 5, True, [], "", 0, False])
def test_template_kwargs_must_be_an_object(value: Any) -> None:
    """400 that names the field, also where a force would replace it."""
    assert refused({"chat_template_kwargs": value}) == "chat_template_kwargs"
    with pytest.raises(InvalidRequest):
        prepare({"chat_template_kwargs": value}, model(force={"chat_template_kwargs": {"a": 1}}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", 1),
        ("stream", "true"),
        ("stream_options", True),
        ("stream_options", [1]),
        ("n", "2"),
        ("n", 1.5),
        ("n", True),
        ("n", 0),
        ("n", -1),
        ("n", 9),
        ("n", 1e300),
        ("max_tokens", "5"),
        ("max_tokens", 1.5),
        ("max_tokens", [5]),
        ("max_completion_tokens", True),
        ("logprobs", 21),
        ("logprobs", -1),
        ("logprobs", "5"),
        ("top_logprobs", 21),
        ("top_logprobs", -1),
        ("prompt_logprobs", 21),
        ("prompt_logprobs", -1),
    ],
)
def test_what_the_gateway_relies_on_is_judged(field: str, value: Any) -> None:
    """A wrong type or too much is 400 with `param`; the engine would read "2" as 2 and -1 as all."""
    assert refused({field: value}) == field


@pytest.mark.parametrize(
    "body",
    [
        {"n": 8},
        {"n": 2.0},
        {"n": None},
        {"max_tokens": 5.0},
        {"max_tokens": 0},
        {"max_tokens": -5},
        {"logprobs": True, "top_logprobs": 20},
        {"logprobs": False},
        {"prompt_logprobs": 0},
        {"stream": None, "stream_options": None},
        {"stream": False},
        {"temperature": "hot", "messages": 5, "tools": "none"},
    ],
)
def test_everything_else_is_the_engines_to_judge(body: dict[str, Any]) -> None:
    """Such a body passes as it is."""
    assert sent(body) == body


def test_no_log_probabilities_where_the_policy_allows_none() -> None:
    """0 is a limit like any other."""
    none = Policy(max_logprobs=0)

    assert refused({"logprobs": True}, policy=none) == "logprobs"
    assert sent({"logprobs": False, "top_logprobs": 0}, policy=none)


@pytest.mark.parametrize(
    ("prompt", "n", "choices"),
    [
        ("x", None, 1),
        ("x", 3, 3),
        (["a", "b"], None, 2),
        (["a", "b"], 3, 6),
        ([1, 2, 3], 2, 2),
        ([[1, 2], [3]], 2, 4),
        ([], 2, 2),
        (None, 2, 2),
    ],
)
def test_choices_are_n_for_each_prompt(prompt: Any, n: int | None, choices: int) -> None:
    """A list of token ids is one prompt, a list of lists is several."""
    assert prepare({"prompt": prompt, "n": n}, route=COMPLETIONS).choices == choices


def test_chat_has_one_prompt() -> None:
    """Whatever stands in a field named prompt."""
    assert prepare({"prompt": ["a", "b"], "n": 2}).choices == 2


def test_more_prompts_than_the_policy_allows_are_refused() -> None:
    """400 with `param` "prompt"; as many token ids are one prompt."""
    assert refused({"prompt": ["x"] * 257}, route=COMPLETIONS) == "prompt"
    assert prepare({"prompt": [1] * 257}, route=COMPLETIONS).choices == 1
    assert prepare({"prompt": ["x"] * 256}, route=COMPLETIONS).choices == 256


@pytest.mark.parametrize(
    ("route", "field"),
    [
        (CHAT, "max_completion_tokens"),
        (COMPLETIONS, "max_tokens"),
        (RESPONSES, "max_output_tokens"),
        (MESSAGES, "max_tokens"),
    ],
)
def test_the_default_output_cap_is_written_where_none_is_given(route: str, field: str) -> None:
    """In the field of the route; null is none given."""
    capped = Policy(default_max_tokens=100)

    assert sent({}, route=route, policy=capped) == {field: 100}
    assert sent({field: None}, route=route, policy=capped) == {field: 100}
    assert sent({field: 5}, route=route, policy=capped) == {field: 5}
    assert sent({field: 0}, route=route, policy=capped) == {field: 0}


def test_any_output_cap_keeps_the_default_away() -> None:
    """The older field of chat counts, and so does a default of the model's."""
    capped = Policy(default_max_tokens=100)

    assert sent({"max_tokens": 5}, policy=capped) == {"max_tokens": 5}
    assert sent({}, model(defaults={"max_tokens": 7}), policy=capped) == {"max_tokens": 7}
    assert sent({"input": "x"}, route="/v1/embeddings", policy=capped) == {"input": "x"}


def test_no_output_cap_is_written_by_default() -> None:
    """default_max_tokens is 0 unless an operator sets it."""
    assert sent({}) == {}


@pytest.mark.parametrize("route", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    ("options", "asked"),
    [(None, False), ({}, False), ({"include_usage": None}, False), ({"include_usage": False}, False),
     ({"include_usage": True}, True)],
)  # fmt: skip
def test_usage_is_asked_for_on_every_stream(route: str, options: Any, asked: bool) -> None:
    """Whether the caller asked is told apart, and other options stay."""
    prepared = prepare({"stream": True, "stream_options": options}, route=route)

    assert prepared.body["stream_options"] == {"include_usage": True}
    assert (prepared.stream, prepared.include_usage) == (True, asked)

    other = prepare({"stream": True, "stream_options": {"continuous_usage_stats": True}}, route=route)
    assert other.body["stream_options"] == {"continuous_usage_stats": True, "include_usage": True}


def test_usage_may_not_be_asked_for_in_words() -> None:
    """The gateway must know whether to take the usage event out."""
    assert (
        refused({"stream": True, "stream_options": {"include_usage": "yes"}})
        == "stream_options.include_usage"
    )


@pytest.mark.parametrize("stream", [None, False])
def test_options_without_a_stream_are_left_for_the_engine(stream: bool | None) -> None:
    """It refuses them; nothing is added."""
    prepared = prepare({"stream": stream, "stream_options": {"include_usage": True}})

    assert prepared.body["stream_options"] == {"include_usage": True}
    assert (prepared.stream, prepared.include_usage) == (False, False)


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES])
def test_routes_that_report_usage_by_themselves_are_not_asked(route: str) -> None:
    """Their streams end with it; stream_options are not theirs."""
    prepared = prepare({"stream": True}, route=route)

    assert prepared.body == {"model": "m", "stream": True}
    assert (prepared.stream, prepared.include_usage) == (True, False)


def test_a_route_that_the_model_does_not_serve_is_refused() -> None:
    """400 that names the routes it does serve."""
    embedder = model(routes=("/v1/embeddings",))

    with pytest.raises(InvalidRequest, match="it serves /v1/embeddings") as error:
        prepare({}, embedder)

    assert (error.value.code, error.value.param) == ("invalid_request", "model")
    assert sent({"input": "x"}, embedder, route="/v1/embeddings") == {"input": "x"}
