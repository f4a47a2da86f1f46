"""What callers may not set, what must have a right type, and how much one request may ask for."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from tests.policy.calls import (
    AUDIO,
    CHAT,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    WRITTEN_BY_US,
    key,
    model,
    prepare,
    refused,
    sent,
)

FORBIDDEN = [
    "priority",
    "cache_salt",
    "kv_transfer_params",
    "ec_transfer_params",
    "request_id",
    "session_id",
    "vllm_xargs",
    "mm_processor_kwargs",
    "media_io_kwargs",
    "prompt_embeds",
    "stream_interval",
    "chat_template",
]


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
        ("max_completion_tokens", 0),
        ("max_tokens", 0),
        ("max_tokens", -5),
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
        {"max_tokens": 0, "echo": True},
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


def test_a_form_streams_with_usage_in_its_own_field() -> None:
    """Audio routes know no stream_options."""
    prepared = prepare({"stream": True}, route=AUDIO)

    assert prepared.body == {"model": "m", "stream": True, "stream_include_usage": True}
    assert (prepared.stream, prepared.include_usage) == (True, False)
    assert prepare({"stream": True, "stream_include_usage": True}, route=AUDIO).include_usage
    assert refused({"stream": True, "stream_include_usage": "yes"}, route=AUDIO) == "stream_include_usage"


def test_a_form_gets_plain_defaults_alone() -> None:
    """What chat's response_format holds is no field of a form, and would be the wrong one there."""
    voice = model(
        defaults={"temperature": 0.2, "response_format": {"type": "json_object"}, "stop": ["x"]},
        force={"language": "en", "chat_template_kwargs": {"a": 1}},
    )

    assert sent({}, voice, route=AUDIO) == {"temperature": 0.2, "language": "en"}


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

    assert prepared.body == {"model": "m", "stream": True, **WRITTEN_BY_US.get(route, {})}
    assert (prepared.stream, prepared.include_usage) == (True, False)


def test_a_route_that_the_model_does_not_serve_is_refused() -> None:
    """400 that names the routes it does serve."""
    embedder = model(routes=("/v1/embeddings",))

    with pytest.raises(InvalidRequest, match="it serves /v1/embeddings") as error:
        prepare({}, embedder)

    assert (error.value.code, error.value.param) == ("invalid_request", "model")
    assert sent({"input": "x"}, embedder, route="/v1/embeddings") == {"input": "x"}
