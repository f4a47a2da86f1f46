"""How much one request may ask for: prompts, choices, log probabilities, output."""

from typing import Any

import pytest

from gateway.settings import Policy
from tests.policy.calls import AUDIO, CHAT, COMPLETIONS, MESSAGES, RESPONSES, model, prepare, refused, sent


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


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        ("/v1/embeddings", {"input": ["x"] * 257}, "input"),
        ("/v1/embeddings", {"input": [[1]] * 257}, "input"),
        ("/v1/embeddings", {"messages": [[{"role": "user"}]] * 257}, "messages"),
        ("/classify", {"input": ["x"] * 257}, "input"),
        ("/pooling", {"input": ["x"] * 257}, "input"),
        ("/v1/rerank", {"query": "x", "documents": ["x"] * 257}, "documents"),
        ("/v1/rerank", {"query": "x", "documents": [{"content": []}] * 257}, "documents"),
        ("/v1/rerank", {"query": "x", "documents": [{"role": "user", "content": []}] * 257}, "documents"),
        ("/v1/score", {"text_1": "x", "text_2": [{"role": "user", "content": []}] * 257}, "text_2"),
        *(
            ("/v1/score", {"text_1": "x", field: ["x"] * 257}, field)
            for field in ("text_1", "text_2", "queries", "documents", "items", "data_1", "data_2")
        ),
    ],
)
def test_prompts_are_counted_on_routes_that_embed_too(route: str, body: dict[str, Any], param: str) -> None:
    """Documents and pairs to score as well: each is a prompt to the engine."""
    assert refused(body, route=route) == param


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/embeddings", {"input": [1] * 257}),
        ("/v1/embeddings", {"input": [{"role": "user", "content": "x"}] * 257}),
        ("/v1/embeddings", {"messages": [{"role": "user", "content": "x"}] * 257}),
        ("/v1/rerank", {"query": ["x"] * 257, "documents": "x"}),
        ("/v1/score", {"text_1": ["x"] * 256, "text_2": ["x"] * 256}),
        ("/detokenize", {"tokens": [1] * 257}),
    ],
)
def test_one_long_prompt_is_no_list_of_prompts(route: str, body: dict[str, Any]) -> None:
    """Nor is a conversation."""
    assert sent(body, route=route) == body
    assert prepare(body, route=route).choices == 1


@pytest.mark.parametrize("field", ["best_of", "n_cmpl"])
def test_other_names_of_n_are_bounded_too(field: str) -> None:
    """An engine that knows them generates as much for them; the answer's choices are still n."""
    assert refused({field: 9}) == field
    assert refused({field: "2"}, route=COMPLETIONS) == field
    assert prepare({field: 8, "n": 2}, route=COMPLETIONS).choices == 2


@pytest.mark.parametrize("route", [RESPONSES, MESSAGES, AUDIO])
def test_n_makes_no_choices_where_engines_do_not_read_it(route: str) -> None:
    """It is judged, and passes; counted, it would make of one answer a part of one."""
    assert prepare({"n": 8}, route=route).choices == 1
    assert sent({"n": 8}, route=route) == {"n": 8}
    assert refused({"n": 9}, route=route) == "n"
    assert refused({"n": "2"}, route=route) == "n"


def test_log_probabilities_of_chosen_tokens_are_bounded_too() -> None:
    """They are asked for by id, so that there may be more than the most likely ones."""
    assert refused({"logprobs": True, "logprob_token_ids": [1] * 21}) == "logprob_token_ids"
    assert sent({"logprobs": True, "logprob_token_ids": [1] * 20})


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
        (AUDIO, "max_completion_tokens"),
    ],
)
def test_the_default_output_cap_is_written_where_none_is_given(route: str, field: str) -> None:
    """In the field of the route; null is none given."""
    capped = Policy(default_max_tokens=100)

    assert sent({}, route=route, policy=capped) == {field: 100}
    assert sent({field: None}, route=route, policy=capped) == {field: 100}
    assert sent({field: 5}, route=route, policy=capped) == {field: 5}


def test_any_output_cap_keeps_the_default_away() -> None:
    """The older field of chat counts, and so does a default of the model's."""
    capped = Policy(default_max_tokens=100)

    assert sent({"max_tokens": 5}, policy=capped) == {"max_tokens": 5}
    assert sent({}, model(defaults={"max_tokens": 7}), policy=capped) == {"max_tokens": 7}
    assert sent({"input": "x"}, route="/v1/embeddings", policy=capped) == {"input": "x"}


def test_no_output_cap_is_written_by_default() -> None:
    """default_max_tokens is 0 unless an operator sets it."""
    assert sent({}) == {}
