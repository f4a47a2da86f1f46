"""Token counts are found in any answer, whatever else stands in it, and never guessed."""

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.metrics import Metrics
from gateway.usage import Usage, at_top, count, from_json, in_answer
from tests.fake_engine import answers
from tests.running import least

PLAIN = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
QUICK_SECONDS = 0.2  # of the CPU
TEXTS = st.text(alphabet=st.sampled_from('"{}[]:,\\usage prompt_tokens0\n'), max_size=60)


def answer(usage: Any, text: str = "Hello.") -> bytes:
    """A plain answer with this usage object at its end."""
    return json.dumps({**answers.completion("m", text, 3), "usage": usage}).encode()


@pytest.mark.parametrize(
    ("details", "cached", "reasoning"),
    [
        ({}, 0, 0),
        ({"prompt_tokens_details": None, "completion_tokens_details": None}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": None}}, 0, 0),
        ({"prompt_tokens_details": {}}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": 4}}, 4, 0),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, 0, 2),
        ({"prompt_tokens_details": [4], "completion_tokens_details": "2"}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": -4}}, 0, 0),
    ],
)
def test_details_may_be_there_null_or_absent(details: dict[str, Any], cached: int, reasoning: int) -> None:
    """Cached tokens are part of the prompt, reasoning part of the completion: nothing is added."""
    assert in_answer(answer({**PLAIN, **details})) == Usage(7, cached, 3, reasoning)


@pytest.mark.parametrize("usage", [None, 5, "x", [], True])
def test_what_is_no_usage_object_is_none(usage: Any) -> None:
    """An answer without counts is not an answer of 0 tokens."""
    assert from_json(usage) is None
    assert in_answer(answer(usage)) is None


@pytest.mark.parametrize("number", [None, "7", 7.5, 1e30, float("inf"), float("nan"), True, -7, [7]])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_a_count_that_is_none_makes_the_whole_no_count(name: str, number: Any) -> None:
    """Both must be told: what is untold is estimated, and never booked as exactly 0."""
    assert from_json({**PLAIN, name: number}) is None
    assert from_json({other: 3 for other in ("prompt_tokens", "completion_tokens") if other != name}) is None


@pytest.mark.parametrize("number", ["4", -4, 4.5])
def test_a_part_of_the_prompt_that_is_no_count_makes_it_none(number: Any) -> None:
    """Anthropic's prompt is a sum."""
    assert from_json({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": number}) is None


def test_whole_floats_are_counts() -> None:
    """Some languages write all numbers so."""
    assert from_json({"prompt_tokens": 7.0, "completion_tokens": 3.0}) == Usage(7, 0, 3)


def test_parts_are_no_more_than_their_whole() -> None:
    """Whatever an engine says of them."""
    parts = {"prompt_tokens_details": {"cached_tokens": 500}}
    parts |= {"completion_tokens_details": {"reasoning_tokens": 999}}
    assert from_json({**PLAIN, **parts}) == Usage(7, 7, 3, 3)


@pytest.mark.parametrize("gap", ["", " "])
def test_a_word_of_the_prompt_does_not_hide_it(gap: str) -> None:
    """With `prompt_logprobs` each prompt token stands in the answer, and may be just that word."""
    logprobs = [{"1": {"logprob": -1.0, "decoded_token": "usage"}}] * 300
    body = json.dumps({"usage": PLAIN, "prompt_logprobs": logprobs}, separators=("," + gap, ":" + gap))
    assert in_answer(body.encode()) == Usage(7, 0, 3)


@given(TEXTS)
def test_a_text_that_looks_like_usage_is_a_text(text: str) -> None:
    """Quotes inside strings are escaped, so what is found is a member's name."""
    assert in_answer(answer(PLAIN, text + ' "usage": {"prompt_tokens": 9}')) == Usage(7, 0, 3, 0)


def test_the_usage_of_the_whole_answer_counts_and_not_one_inside_it() -> None:
    """It stands at the end of what engines write; a tool call's arguments are a string."""
    arguments = '{"usage": {"prompt_tokens": 1}}'
    inside = {"choices": [{"message": {"tool_calls": [{"function": {"arguments": arguments}}]}}]}
    assert in_answer(json.dumps({**inside, "usage": PLAIN}).encode()) == Usage(7, 0, 3, 0)


@pytest.mark.parametrize("space", [b"", b" ", b"\n\t "])
def test_white_space_does_not_matter(space: bytes) -> None:
    """Engines differ in it."""
    body = b'{"choices":[],"usage"%b:%b{%b"prompt_tokens"%b:7,"completion_tokens":3%b}%b}'
    assert in_answer(body % ((space,) * 6)) == Usage(7, 0, 3, 0)


@pytest.mark.parametrize("number", [b"-Infinity", b"NaN", b"1e999"])
def test_numbers_that_are_no_json_do_not_hide_it(number: bytes) -> None:
    """As an engine writes for the logarithm of nothing; in the usage object itself nothing can be read."""
    body = b'{"choices":[{"logprob":%b}],"usage":{"prompt_tokens":7,"completion_tokens":3}}' % number
    assert in_answer(body) == Usage(7, 0, 3)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"null", b'"usage"', b'{"usage":', b'{"usage":{', b'{"usage":{"prompt_tokens":',
     b"\xff" * 100, b'{"usage":{"prompt_tokens":7,}}', b'{"usage":{"prompt_tokens":NaN}}',
     b'{"usage":{"a":{"b":{"c":1}}}}'],
)  # fmt: skip
def test_no_body_makes_it_fail(body: bytes) -> None:
    """It reads what an engine wrote, which may be anything; the answer has to go out all the same."""
    assert in_answer(body) is None


@pytest.mark.parametrize(
    "body",
    [
        answer(PLAIN, "x" * 30_000_000),
        answer(None, '"usage"' * 1_000_000),
        b'{"usage":' * 1_000_000,
        b'{"usage":{' + b"{" * 5_000_000,
        b'"usage":{' * 100_000 + b"}" * 100_000,
        b'{"usage":{' + b'"a":{},' * 1_000_000,
        b'["usage",' * 3_000_000,
    ],
    ids=["large", "in a text", "names", "braces", "nested", "many", "words"],
)
def test_a_large_answer_is_searched_quickly(body: bytes) -> None:
    """The event loop waits for it: no other caller's token passes meanwhile."""

    def cpu_seconds() -> float:
        started = time.process_time()
        in_answer(body)
        return time.process_time() - started

    assert least(cpu_seconds, QUICK_SECONDS) < QUICK_SECONDS


def test_tokens_are_counted_by_kind() -> None:
    """Kinds that did not occur make no series."""
    metrics = Metrics()
    count(metrics.traffic, "a-key", "m", Usage(7, 4, 3, 2))
    count(metrics.traffic, "a-key", "m", Usage(1, 0, 1, 0))
    count(metrics.traffic, "another", "m", Usage(1, 0, 1, 0))
    shown = {
        (sample.labels["key"], sample.labels["kind"]): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "gateway_tokens_total"
    }
    assert shown == {
        ("a-key", "prompt"): 8, ("a-key", "cached"): 4, ("a-key", "completion"): 4, ("a-key", "reasoning"): 2,
        ("another", "prompt"): 1, ("another", "completion"): 1,
    }  # fmt: skip


def test_what_an_engine_may_send_is_read_as_orjson_reads_it() -> None:
    """The shape that vLLM writes today, as a whole."""
    body = orjson.dumps({
        "id": "chatcmpl-1", "object": "chat.completion", "service_tier": None,
        "choices": [{"index": 0, "message": {"content": 'He said "usage".', "tool_calls": []}}],
        "usage": {"prompt_tokens": 12, "total_tokens": 20, "completion_tokens": 8,
                  "prompt_tokens_details": {"cached_tokens": 10, "multimodal_tokens": None},
                  "completion_tokens_details": {"reasoning_tokens": 5}},
        "prompt_logprobs": None, "prompt_token_ids": None, "kv_transfer_params": None,
    })  # fmt: skip
    assert in_answer(body) == Usage(12, 10, 8, 5)


RESPONSE = {
    "input_tokens": 7, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (RESPONSE, Usage(7, 4, 3, 2)),
        ({"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2}, Usage(7, 4, 2)),
        ({"input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2,
          "output_tokens": 0}, Usage(7, 4)),
        ({"input_tokens": 7, "cache_read_input_tokens": None, "output_tokens": 0}, Usage(7)),
        ({"prompt_tokens": 7, "completion_tokens": 2, "cache_read_input_tokens": 4}, Usage(7, 4, 2)),
        ({"prompt_tokens": None, "input_tokens": 7, "output_tokens": 2}, Usage(7, 0, 2)),
        ({"total_tokens": 7, "completion_tokens": 3}, Usage(4, 0, 3)),
    ],
    ids=["responses", "messages", "written to the cache", "nulls", "both", "the other's null", "a total"],
)  # fmt: skip
def test_every_api_names_them_in_its_own_way(usage: dict[str, Any], counts: Usage) -> None:
    """Prompt tokens hold the cached ones in all of them, also where the engine told them apart."""
    assert from_json(usage) == counts


@pytest.mark.parametrize("completion", [{}, {"completion_tokens": 0}, {"completion_tokens": None}])
@pytest.mark.parametrize("prompt", [{"prompt_tokens": 7, "total_tokens": 7}, {"total_tokens": 7}])
def test_where_nothing_is_generated_the_prompt_is_all(
    prompt: dict[str, Any], completion: dict[str, Any]
) -> None:
    """An embedding's counts are exact without a completion; an answer's are not."""
    usage = {**prompt, **completion}
    assert from_json(usage, generates=False) == Usage(7)
    assert in_answer(answer(usage), generates=False) == Usage(7)
    assert at_top(answer(usage), generates=False) == Usage(7)
    if not completion:
        assert from_json(usage) is None


@pytest.mark.parametrize("usage", [{"type": "duration", "seconds": 9}, {}, {"cached_tokens": 4}, {"cost": 1}])
def test_what_counts_something_else_counts_no_tokens(usage: dict[str, Any]) -> None:
    """A transcription is billed by its length; nothing is not 0."""
    assert from_json(usage) is None


@pytest.mark.parametrize("number", [None, -1, 7.5, "7"])
def test_counts_that_are_none_are_not_0(number: Any) -> None:
    """The call is estimated then: it was not free."""
    assert from_json({"prompt_tokens": number, "completion_tokens": number, "total_tokens": number}) is None


def test_a_usage_that_counts_nothing_does_not_hide_the_one_before_it() -> None:
    """The search goes on: a schema may have a property of that name."""
    schema = {"properties": {"usage": {"type": "string"}}}
    assert in_answer(json.dumps({"usage": PLAIN, "tools": [schema]}).encode()) == Usage(7, 0, 3, 0)


def test_at_the_top_only_the_answers_own_counts() -> None:
    """What a caller sent and the answer repeats is not asked, wherever it stands."""
    own = {"usage": {"input_tokens": 0, "output_tokens": 0}}
    assert at_top(json.dumps({"usage": RESPONSE, "tools": [own], "z": own}).encode()) == Usage(7, 4, 3, 2)
    assert at_top(json.dumps({"tools": [own]}).encode()) is None
    assert at_top(b"[]") is None
    assert at_top(b'{"x": -Infinity, "usage": {"input_tokens": 7, "output_tokens": 3}}') == Usage(7, 0, 3)
