"""No engine fetches what a caller names, unless the operator named the host."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidRequest
from gateway.policy import media
from gateway.routes import ROUTES
from tests.policy.calls import prepare

HOSTS = ("images.example.com",)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
ELSEWHERE = "http://169.254.169.254/latest/meta-data"
IMAGE = {"type": "image_url", "image_url": {"url": ELSEWHERE}}
INPUT_IMAGE = {"type": "input_image", "image_url": ELSEWHERE}
SOURCE = {"type": "image", "source": {"type": "url", "url": ELSEWHERE}}
TEXT = {"type": "text", "text": "x"}


def chat(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": list(parts)}]}


def param_of(body: dict[str, Any], policy: Any = "data") -> str | None:
    """The place that the refusal names."""
    with pytest.raises(InvalidRequest) as refused:
        media.check(body, policy)
    return refused.value.param


@pytest.mark.parametrize("field", ["image_url", "audio_url", "video_url", "file_url"])
@pytest.mark.parametrize("wrap", [lambda url: url, lambda url: {"url": url}], ids=["plain", "object"])
@pytest.mark.parametrize(
    "url",
    [
        ELSEWHERE,
        "https://images.example.com/a.png",
        "file:///etc/passwd",
        "HTTP://x",
        " https://x",
        "//x/a.png",
        "",
        "d",
        " data:image/png;base64,AAAA",
    ],
)
def test_only_data_is_taken_by_default(field: str, wrap: Callable[[str], Any], url: str) -> None:
    """Whatever the scheme and with or without a type: the refusal names the part."""
    assert param_of(chat(TEXT, {field: wrap(url)})) == f"messages[1].content[1].{field}"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [{"role": "user", "content": [TEXT, INPUT_IMAGE]}]}, "input[0].content[1].image_url"),
        (
            {"input": [{"content": [{"type": "input_file", "file_url": ELSEWHERE}]}]},
            "input[0].content[0].file_url",
        ),
        ({"input": [INPUT_IMAGE]}, "input[0].image_url"),
        (
            {"input": [{"type": "function_call_output", "output": [TEXT, INPUT_IMAGE]}]},
            "input[0].output[1].image_url",
        ),
        (
            {"input": [{"type": "computer_call_output", "output": {"image_url": ELSEWHERE}}]},
            "input[0].output.image_url",
        ),
        ({"messages": [{"role": "user", "content": [SOURCE]}]}, "messages[0].content[0].source"),
        (
            {"messages": [{"content": [{"type": "tool_result", "content": [TEXT, SOURCE]}]}]},
            "messages[0].content[0].content[1].source",
        ),
        ({"system": [SOURCE]}, "system[0].source"),
        ({"messages": [[{"role": "user", "content": [IMAGE]}]]}, "messages[0][0].content[0].image_url"),
        ({"input": [[{"role": "user", "content": [IMAGE]}]]}, "input[0][0].content[0].image_url"),
        ({"messages": [{"content": [{"uuid": "1", **IMAGE}]}]}, "messages[0].content[0].image_url"),
        (
            {"messages": [{"content": [{"type": "text", "image_url": ELSEWHERE}]}]},
            "messages[0].content[0].image_url",
        ),
        *(
            ({field: {"content": [IMAGE]}}, f"{field}.content[0].image_url")
            for field in ("query", "queries", "documents", "items", "text_1", "text_2", "data_1", "data_2")
        ),
        ({"documents": ["a", {"content": [TEXT, IMAGE]}]}, "documents[1].content[1].image_url"),
        (
            {"previous_input_messages": [{"content": [IMAGE]}]},
            "previous_input_messages[0].content[0].image_url",
        ),
    ],
)
def test_it_is_found_wherever_an_engine_would_look(body: dict[str, Any], param: str) -> None:
    """In messages, items, tools' results, texts to embed and to score; the refusal names the place."""
    assert param_of(body) == param


@pytest.mark.parametrize(
    "route", [row.template for row in ROUTES if row.served == "engine" and row.body == "json"]
)
def test_it_is_looked_for_on_every_route(route: str) -> None:
    """Also where no chat template is rendered: engines take messages on more routes than one thinks."""
    for body in (chat(IMAGE), {"input": [INPUT_IMAGE]}, {"documents": [{"content": [IMAGE]}]}):
        with pytest.raises(InvalidRequest):
            prepare(body, route=route)


@pytest.mark.parametrize("policy", ["data", HOSTS])
def test_data_urls_and_text_pass(policy: Any) -> None:
    """What is in the request itself is fetched from nowhere."""
    media.check(chat({"type": "image_url", "image_url": {"url": PIXEL}}), policy)
    media.check(chat({"type": "image_url", "image_url": {"url": PIXEL.replace("data", "DATA")}}), policy)
    media.check(chat({"type": "text", "text": "http://anything"}, {"input_audio": {"data": "AAAA"}}), policy)
    media.check(chat({"type": "image", "source": {"type": "base64", "data": "AAAA"}}), policy)
    media.check({"input": [{"content": [{"type": "input_file", "file_data": "data:,x"}]}]}, policy)


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"function": {"parameters": {"properties": {"image_url": {"url": ELSEWHERE}}}}}]},
        {"messages": [{"role": "user", "content": f"look at {ELSEWHERE}"}]},
        {"metadata": {"image_url": ELSEWHERE}},
        {"messages": [{"content": [{"type": "search_result", "source": ELSEWHERE}]}]},
        {"messages": [{"content": [{"type": "text", "text": "x", "image_url": None}]}]},
        {"messages": [{"content": [{"type": "redacted_thinking", "data": "AAAA"}]}]},
    ],
)
def test_what_no_engine_fetches_passes(body: dict[str, Any]) -> None:
    """A schema may have a field of that name, a text may talk of it."""
    media.check(body, "none")


def test_a_named_host_may_be_asked() -> None:
    """By https, on its own port."""
    url = "https://images.example.com/a.png?size=1@2"
    media.check(chat({"image_url": {"url": url}}), HOSTS)
    media.check(chat({"type": "image", "source": {"type": "url", "url": url}}), HOSTS)


@pytest.mark.parametrize(
    "url",
    [
        "http://images.example.com/a",
        "https://images.example.com.evil.net/a",
        "https://evil.net/images.example.com",
        "https://images.example.com@evil.net/",
        "https://evil.net\\@images.example.com/",
        "https://x@images.example.com/",
        "https://images.example.com:8443/",
        "https://images.example.com:x/",
        "https://images.example.com\n.evil.net/",
        "https://[images.example.com/",
    ],
)
def test_what_only_looks_like_a_named_host_is_refused(url: str) -> None:
    """Also where two parsers could see two hosts."""
    param_of(chat({"image_url": url}), HOSTS)


@pytest.mark.parametrize(
    "part",
    [
        {"image_url": PIXEL},
        {"input_audio": {}},
        {"image_embeds": "x"},
        {"video_url": {"url": PIXEL}},
        {"source": {"type": "base64", "data": "AAAA"}},
    ],
)
def test_none_means_none(part: dict[str, Any]) -> None:
    """Not even what the request itself holds."""
    param_of(chat(part), "none")
    media.check({"prompt": {"prompt_string": "x"}}, "none")
    assert param_of({"prompt": {"prompt_string": "x", "multimodal_data": ["AAAA"]}}, "none")


@pytest.mark.parametrize("policy", ["data", "none", HOSTS])
@pytest.mark.parametrize(
    "part", [{"type": "prompt_embeds", "data": "AAAA"}, {"prompt_embeds": {"data": "AAAA"}}]
)
def test_prompts_as_embeddings_are_never_taken(part: dict[str, Any], policy: Any) -> None:
    """As the field of that name is dropped, a part of that type is refused: an engine would unpack it."""
    param_of(chat(part), policy)


@pytest.mark.parametrize(
    "messages", [None, "x", [None], ["x"], [{"content": "x"}], [{"content": [None, "x"]}], {"content": 5}]
)
def test_odd_messages_are_the_engines_to_judge(messages: Any) -> None:
    """No shape of a body makes this fail in another way."""
    media.check({"messages": messages}, "none")


@pytest.mark.parametrize(
    "part", [{"image_url": {"url": PIXEL}}, {"type": "image_url", "image_url": None}, {"type": "input_audio"}]
)
def test_no_name_under_which_an_engine_would_keep_media_for_all(part: dict[str, Any]) -> None:
    """Whoever knew it would be shown another caller's picture; a message or a text may have one."""
    assert param_of(chat(TEXT, {"uuid": "logo", **part})) == "messages[1].content[1].uuid"
    media.check({"messages": [{"uuid": "1", "content": [{"uuid": "2", **TEXT}]}]}, "data")
    media.check(chat({"uuid": None, "image_url": {"url": PIXEL}}), "data")


def test_parts_nested_deeper_than_any_engine_reads_are_refused() -> None:
    """Nothing hides behind depth, and nothing recurses without a bound."""
    lists: Any = [IMAGE]
    objects: Any = {"content": [IMAGE]}
    messages: Any = [IMAGE]
    for _ in range(120):
        lists, objects, messages = [lists], {"content": objects}, [{"content": messages}]

    for deep in (lists, objects, messages):
        with pytest.raises(InvalidRequest, match="nested deeper"):
            media.check({"messages": deep}, "data")


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(PIXEL),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "output", "type", "text", "image_url", "source", "url", "data"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(value=PARTS, place=st.sampled_from(["messages", "input", "documents", "system"]))
def test_no_shape_of_a_body_is_too_odd(value: Any, place: str) -> None:
    """It passes or it is a 400 that names a place in that field."""
    for policy in ("data", "none", HOSTS):
        try:
            media.check({place: value}, policy)
        except InvalidRequest as refused:
            assert refused.param is not None
            assert refused.param.startswith(place)
