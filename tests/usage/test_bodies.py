"""What of a body is prompt, on every route, whatever else stands in it."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routes import BY_TEMPLATE, OF_ENGINES
from gateway.usage import bodies, text
from gateway.usage.shape import (
    CHATS,
    IMAGES,
    JSON_BYTES,
    MESSAGES,
    PARTS,
    PROMPTS,
    SOUNDS,
    TOOLED,
    UNSYSTEMED,
    Shape,
)
from tests.running import least

CHAT, TEXT, RESPONSES, MESSAGES_API = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
)  # fmt: skip
EMBEDDINGS, RERANK, SCORE, SOUND = "/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/audio/transcriptions"
QUICK_SECONDS = 0.5  # of the CPU
BASE64 = "data:image/png;base64," + "iVBORw0KGgo" * 1000
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
SCALARS = st.sampled_from([None, True, 0, -1, 2**80, 1.5, float("nan"), "", "a", "\ud800", BASE64])
NAMES = st.sampled_from(
    ["messages", "content", "role", "type", "text", "input", "prompt", "tools", "tool_calls", "function",
     "arguments", "name", "system", "instructions", "output", "query", "documents", "text_1", "text_2",
     "reasoning", "thinking", "image_url", "suffix", "user", "tool_use", "tool_result", "function_call",
     "truncate_prompt_tokens", "max_tokens", "chat_template_kwargs", "instruction",
     "previous_input_messages"]
)  # fmt: skip
HOSTILE = st.dictionaries(
    NAMES,
    st.recursive(
        SCALARS | NAMES,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=8,
)


def shaped(route: str, **body: Any) -> Shape:
    """The shape of a body."""
    return bodies.shape(body, BY_TEMPLATE[route])


def letters(shape: Shape) -> float:
    """How many letters of text it has."""
    return shape.kinds[0]


def said(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def parts(shape: Shape) -> dict[int, float]:
    """What it has beside text."""
    return {part: number for part, number in enumerate(shape.parts) if number}


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (CHAT, {"messages": [said("abcd")]}),
        (CHAT, {"messages": [said([{"type": "text", "text": "abcd"}])]}),
        (CHAT, {"messages": [said([{"text": "ab"}, "cd"])]}),
        (RESPONSES, {"input": "abcd"}),
        (RESPONSES, {"input": [said("abcd")]}),
        (RESPONSES, {"input": [said([{"type": "input_text", "text": "abcd"}])]}),
        (MESSAGES_API, {"messages": [said([{"type": "text", "text": "abcd"}])]}),
        (EMBEDDINGS, {"messages": [said("abcd")]}),
    ],
)
def test_a_text_is_a_message_in_every_dialect(route: str, body: dict[str, Any]) -> None:
    """However it is written, it is the same prompt."""
    shape = shaped(route, **body)
    assert letters(shape) == 4
    assert parts(shape) == {CHATS: 1, UNSYSTEMED: 1, MESSAGES: 1}


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (CHAT, {"messages": [said("abcd", "system"), said("ef")]}),
        (CHAT, {"messages": [said("abcd", "developer"), said("ef")]}),
        (RESPONSES, {"instructions": "abcd", "input": "ef"}),
        (MESSAGES_API, {"system": "abcd", "messages": [said("ef")]}),
        (MESSAGES_API, {"system": [{"type": "text", "text": "abcd"}], "messages": [said("ef")]}),
    ],
)
def test_a_system_message_is_one_too(route: str, body: dict[str, Any]) -> None:
    """With it a template brings none of its own."""
    shape = shaped(route, **body)
    assert letters(shape) == 6
    assert parts(shape) == {CHATS: 1, MESSAGES: 2}


@pytest.mark.parametrize(
    ("route", "body", "texts", "id_prompts", "ids"),
    [
        (TEXT, {"prompt": "abcd"}, 1, 0, 0),
        (TEXT, {"prompt": ["ab", "cd"]}, 2, 0, 0),
        (TEXT, {"prompt": [5] * 1000, "suffix": "abcd"}, 0, 1, 1000),
        (TEXT, {"prompt": [[5] * 10, [6] * 20, "abcd"]}, 1, 2, 30),
        (TEXT, {"prompt": "ab", "suffix": "cd"}, 1, 0, 0),
        (EMBEDDINGS, {"input": ["ab", "cd"]}, 2, 0, 0),
        ("/classify", {"input": "abcd"}, 1, 0, 0),
        ("/pooling", {"input": [[5, 6], "abcd"]}, 1, 1, 2),
    ],
)
def test_prompts_without_a_template_and_token_ids(
    route: str, body: dict[str, Any], texts: int, id_prompts: int, ids: int
) -> None:
    """Ids are tokens, and are counted as what they are, however many, with nothing around them."""
    shape = shaped(route, **body)
    assert letters(shape) == (4 if not ids or "abcd" in str(body) else 0)
    assert parts(shape) == ({PROMPTS: texts} if texts else {})
    assert (shape.id_prompts, shape.ids) == (id_prompts, ids)
    assert shape.prompts == texts + id_prompts


@pytest.mark.parametrize(
    ("route", "body", "pairs", "total"),
    [
        (RERANK, {"query": "abc", "documents": ["d", "ef", "ghi"]}, 3, 15),
        (RERANK, {"query": "abc", "documents": [{"text": "de"}, {"content": [{"text": "f"}]}]}, 2, 9),
        (SCORE, {"text_1": "abc", "text_2": "de"}, 1, 5),
        (SCORE, {"text_1": "abc", "text_2": ["d", "e"]}, 2, 8),
        (SCORE, {"text_1": ["a", "b"], "text_2": ["c", "d"]}, 2, 4),
        (SCORE, {"queries": "abc", "documents": ["d", "e"]}, 2, 8),
        (SCORE, {"queries": "abc", "items": ["d", "e"]}, 2, 8),
        (SCORE, {"data_1": "abc", "data_2": "d"}, 1, 4),
    ],
)
def test_a_query_is_read_with_each_document(route: str, body: dict[str, Any], pairs: int, total: int) -> None:
    """As an engine reads it, again and again."""
    shape = shaped(route, **body)
    assert letters(shape) == total
    assert parts(shape) == {PROMPTS: pairs}


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url", "image_url": {"url": BASE64}}, IMAGES),
        ({"image_url": BASE64}, IMAGES),
        ({"type": "input_image", "image_url": BASE64}, IMAGES),
        ({"type": "image", "source": {"type": "base64", "data": BASE64}}, IMAGES),
        ({"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}}, SOUNDS),
        ({"type": "audio_url", "audio_url": {"url": BASE64}}, SOUNDS),
    ],
)
def test_media_count_each_and_not_by_their_bytes(part: dict[str, Any], kind: int) -> None:
    """Base64 is no text."""
    shape = shaped(CHAT, messages=[said([part, part, {"type": "text", "text": "abcd"}])])
    assert shape.parts[kind] == 2
    assert letters(shape) == 4


def test_a_recording_is_a_sound_and_its_prompt_text() -> None:
    """The form's file is not in the body."""
    shape = shaped(SOUND, prompt="abcd")
    assert (letters(shape), parts(shape)) == (4, {PROMPTS: 1, SOUNDS: 1})


def test_tools_and_calls_are_counted_as_json() -> None:
    """In all three dialects, each with the results of calls as messages."""
    call = {"name": "get", "arguments": '{"a":1}'}
    chat = shaped(
        CHAT, tools=[TOOL], messages=[said("a"), said(None, "assistant", tool_calls=[{"function": call}]),
                                      said("b", "tool")],
    )  # fmt: skip
    responses = shaped(
        RESPONSES, tools=[TOOL],
        input=[said("a"), {"type": "function_call", **call}, {"type": "function_call_output", "output": "b"}],
    )  # fmt: skip
    messages = shaped(
        MESSAGES_API, tools=[TOOL],
        messages=[said("a"), said([{"type": "tool_use", "name": "get", "input": {"a": 1}}], "assistant"),
                  said([{"type": "tool_result", "content": [{"type": "text", "text": "b"}]}])],
    )  # fmt: skip
    for shape in (chat, responses, messages):
        assert letters(shape) == 2
        assert shape.parts[TOOLED] == 1
        assert shape.parts[MESSAGES] >= 2
        assert shape.parts[JSON_BYTES] == chat.parts[JSON_BYTES] > 100


def test_thoughts_before_the_last_question_are_left_out() -> None:
    """As templates do; those after it belong to an agent's turn that goes on."""
    before = [said("a"), said("b", "assistant", reasoning="ccc"), said("d")]
    assert letters(shaped(CHAT, messages=before)) == 3
    assert letters(shaped(CHAT, messages=[*before, said("e", "assistant", reasoning_content="fff")])) == 7


def test_what_makes_no_prompt_has_no_shape() -> None:
    """Tokens are counted there, and not used."""
    for route in ("/tokenize", "/detokenize", "/v1/messages/count_tokens"):
        shape = shaped(route, prompt="abcd", messages=[said("abcd")])
        assert (letters(shape), parts(shape)) == (0, {})


@given(body=HOSTILE)
def test_no_body_breaks_it(body: dict[str, Any]) -> None:
    """Any JSON in any place, on all routes: no engine has judged it yet."""
    for route in OF_ENGINES:
        shape = bodies.shape(body, BY_TEMPLATE[route])
        assert len(shape.features) == text.KINDS + PARTS
        assert min(shape.features) >= 0
        assert shape.ids >= 0


def test_of_a_very_long_list_some_items_stand_for_all() -> None:
    """Whatever is in it, in the end it is about as much."""
    messages = [said([{"type": "text", "text": "abcd"}] * 3)] * 50_000
    shape = shaped(CHAT, messages=messages)
    assert shape.parts[MESSAGES] == 50_000
    assert letters(shape) == pytest.approx(600_000, rel=0.01)


def nested(levels: int) -> Any:
    """Lists in lists, hundreds of items in each."""
    return "a" if not levels else [{"type": "tool_result", "content": nested(levels - 1)}] * 100


@pytest.mark.parametrize(
    ("route", "body"),
    [
        (CHAT, {"messages": [said("a")] * 1_000_000}),
        (CHAT, {"messages": [said([{"text": "a"}] * 1000)] * 1000}),
        (CHAT, {"messages": [said("a", tool_calls=[{"function": {}}] * 1000)] * 1000}),
        (CHAT, {"messages": [said(nested(4))]}),
        (MESSAGES_API, {"messages": [said(nested(3))] * 1000}),
        (TEXT, {"prompt": [[1]] * 1_000_000}),
        (TEXT, {"prompt": [1] * 4_000_000}),
        (EMBEDDINGS, {"input": ["a"] * 4_000_000}),
        (RERANK, {"query": "a" * 10_000_000, "documents": ["b"] * 1_000_000}),
    ],
    ids=["messages", "parts", "calls", "nested", "results", "prompts", "ids", "texts", "documents"],
)
def test_no_body_takes_long(route: str, body: dict[str, Any]) -> None:
    """The event loop waits for it: no other caller's token passes meanwhile."""

    def cpu_seconds() -> float:
        started = time.process_time()
        bodies.shape(body, BY_TEMPLATE[route])
        return time.process_time() - started

    assert least(cpu_seconds, QUICK_SECONDS) < QUICK_SECONDS
