"""What a call is expected to use, and what one that told nothing has used."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routes import BY_TEMPLATE, OF_ENGINES
from gateway.usage import Ask, Estimates, Usage
from tests.running import least
from tests.usage.corpus import Body
from tests.usage.estimating import CHAT, HELLO, ask, finish
from tests.usage.test_bodies import HOSTILE

QUICK_SECONDS = 0.00025  # of the CPU, for one small call asked and learned; it is a tenth of that


def test_prompt_and_output_are_reserved_together() -> None:
    """The output of each choice."""
    call = ask(Estimates(), {**HELLO, "max_tokens": 100, "n": 3}, choices=3)
    assert call.output == 300
    assert call.tokens == call.prompt + 300
    assert 10 < call.prompt < 60


def test_without_a_cap_as_much_as_this_key_has_used() -> None:
    """Of another key's calls nothing is known."""
    known = Estimates()
    for _ in range(20):
        finish(known, ask(known, {**HELLO, "n": 2}, choices=2), 20, 800)
    assert ask(known, HELLO).output == 400
    assert ask(known, HELLO, key="another").output == 1024


@pytest.mark.parametrize("route", ["/v1/embeddings", "/v1/rerank", "/v1/score", "/classify", "/pooling"])
def test_what_generates_nothing_reserves_its_prompt(route: str) -> None:
    """And is cut at its prompt."""
    call = ask(Estimates(), {"input": "Hello", "query": "a", "documents": ["b"]}, route)
    assert call.output == 0
    assert call.prompt >= 1
    assert Estimates().cut(call, data_events=0, seconds=1000) == Usage(prompt=call.prompt)


@pytest.mark.parametrize("route", ["/tokenize", "/detokenize", "/v1/messages/count_tokens"])
def test_what_tells_no_tokens_reserves_none(route: str) -> None:
    """Only a request."""
    assert ask(Estimates(), HELLO, route).tokens == 0


@pytest.mark.parametrize("taught", [0, 100])
@pytest.mark.parametrize(
    ("route", "body", "tokens"),
    [
        ("/v1/completions", {"prompt": [5] * 100_000}, 100_000),
        ("/v1/completions", {"prompt": [[5] * 3] * 200}, 600),
        ("/v1/embeddings", {"input": [1, 2, 3]}, 3),
        ("/v1/embeddings", {"input": [[7]] * 256}, 256),
    ],
)
def test_token_ids_are_counted_exactly(route: str, body: Body, tokens: int, taught: int) -> None:
    """Whatever the weights have been taught of texts, and however many prompts they are."""
    known = Estimates()
    for _ in range(taught):
        finish(known, ask(known, {"prompt": "word " * 50}, "/v1/completions"), 500)
        finish(known, ask(known, {"input": ["word", "other"]}, "/v1/embeddings"), 50)
    assert ask(known, body, route).prompt == tokens


def test_calls_that_told_nothing_teach_what_to_reserve_too() -> None:
    """Else a key whose answers tell no tokens would reserve 1024 for ever."""
    known = Estimates()
    for _ in range(20):
        call = ask(known, HELLO)
        assert call.output == 1024
        known.learn_output(call, 10)
    assert ask(known, HELLO).output == 256


def test_a_prompt_that_the_engine_shall_cut_is_no_longer_than_that() -> None:
    """And teaches nothing."""
    known = Estimates()
    body = {"input": ["word " * 1000] * 3, "truncate_prompt_tokens": 16}
    call = ask(known, body, "/v1/embeddings")
    assert call.prompt == 48
    long = {"input": "word " * 1000}
    before = ask(known, long, "/v1/embeddings").prompt
    finish(known, call, 48)
    assert ask(known, long, "/v1/embeddings").prompt == before


@pytest.mark.parametrize(
    ("route", "cuts"),
    [(CHAT, True), ("/v1/completions", True), ("/v1/responses", False), ("/v1/messages", False)],
)
def test_only_where_the_engine_knows_the_field_it_cuts(route: str, *, cuts: bool) -> None:
    """vLLM has `truncate_prompt_tokens` in chat, completions and what embeds, and ignores it elsewhere."""
    known, text = Estimates(), "word " * 1000
    body = {"messages": [{"role": "user", "content": text}], "prompt": text, "input": text}
    whole = ask(known, body, route)
    call = ask(known, {**body, "truncate_prompt_tokens": 16}, route)
    assert call.prompt == (16 if cuts else whole.prompt)
    assert (call.shared == 0) is cuts


def test_no_prompt_is_longer_than_its_model_takes() -> None:
    """The engine would have refused it: who leaves before that has not used more."""
    known = Estimates()
    chat = ask(known, {"messages": [{"role": "user", "content": "QUJD" * 100_000}]}).within(4096)
    assert chat.prompt == 4096
    pairs = ask(known, {"query": "a" * 100_000, "documents": ["b"] * 10}, "/v1/rerank").within(512)
    assert known.cut(pairs, data_events=0, seconds=9).prompt == 5120
    short = ask(known, HELLO)
    assert short.within(4096) == short


def test_a_stream_that_is_cut_has_used_what_came() -> None:
    """One token an event, but for the role."""
    known = Estimates()
    call = ask(known, {**HELLO, "stream": True, "max_tokens": 50})
    assert known.cut(call, data_events=11, seconds=100) == Usage(prompt=call.prompt, completion=10)
    assert known.cut(call, data_events=0, seconds=100) == Usage(prompt=call.prompt)
    assert known.cut(call, data_events=1, seconds=0) == Usage(prompt=call.prompt)
    assert known.cut(call, data_events=500, seconds=100).completion == 50


def test_a_plain_call_that_is_cut_has_used_its_time() -> None:
    """By the pace of the streams before it, and no more than its cap."""
    known = Estimates()
    for _ in range(50):
        finish(known, ask(known, {**HELLO, "stream": True}), 20, 101,
               data_events=103, first_token_seconds=0.5, seconds=2.5)  # fmt: skip
    call = ask(known, {**HELLO, "n": 2, "max_tokens": 80}, choices=2)
    assert known.cut(call, data_events=0, seconds=0.3).completion == 0
    assert known.cut(call, data_events=0, seconds=1.5).completion == pytest.approx(100, rel=0.03)
    assert known.cut(call, data_events=0, seconds=60).completion == 160


@pytest.mark.parametrize("hidden", [False, 0, "false"])
def test_a_stream_that_hides_its_reasoning_has_used_its_time(hidden: Any) -> None:
    """It is silent while the engine works, and says nothing of what an event of another stream carries."""
    known = Estimates()
    for _ in range(20):
        finish(known, ask(known, {**HELLO, "stream": True}), 20, 101,
               data_events=103, first_token_seconds=0.5, seconds=2.5)  # fmt: skip
    call = ask(known, {**HELLO, "stream": True, "include_reasoning": hidden})
    assert known.cut(call, data_events=1, seconds=20.5).completion == pytest.approx(1000, rel=0.03)
    for _ in range(20):
        finish(known, call, 20, 4000, data_events=5, first_token_seconds=0.5, seconds=80.5)
    seen = ask(known, {**HELLO, "stream": True})
    assert known.cut(seen, data_events=21, seconds=2.5).completion == 20


@pytest.mark.parametrize(("stream", "half"), [(False, 0.5), (True, 0.0)])
def test_before_the_first_token_a_share_of_the_prompt_counts(*, stream: bool, half: float) -> None:
    """By the times that it took others, and a stream would have shown it: never nothing, at last all."""
    known = Estimates()
    for number in range(60):
        finish(known, ask(known, {**HELLO, "stream": True}), 20, 101,
               data_events=103, first_token_seconds=0.2 if number % 2 else 0.8, seconds=2.5)  # fmt: skip
    text = [{"role": "user", "content": "Tell me all about Paris. " * 100}]
    call = ask(known, {"messages": text, "stream": stream})
    shares = [known.cut(call, data_events=0, seconds=seconds).prompt for seconds in (0.0, 0.5, 1.0, 99.0)]
    assert shares == [
        1,
        pytest.approx(half * call.prompt, abs=0.05 * call.prompt),
        call.prompt,
        call.prompt,
    ]


def test_a_key_whose_events_carry_much_makes_no_newcomers_dear() -> None:
    """What is shared stays within what engines send in one event; its own calls are counted as they are."""
    known, body = Estimates(), {**HELLO, "stream": True}
    for _ in range(60):
        finish(
            known, ask(known, body, key="odd"), 20, 640, data_events=12, first_token_seconds=0.1, seconds=6.0
        )
    assert known.cut(ask(known, body, key="new"), data_events=21, seconds=1).completion <= 160
    assert known.cut(ask(known, body, key="odd"), data_events=21, seconds=1).completion > 1000


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_answer_without_counts_has_used_its_whole_prompt(*, stream: bool) -> None:
    """However soon it came, and its time; also where a plain one answers a call for a stream."""
    known = Estimates()
    for _ in range(50):
        finish(known, ask(known, {**HELLO, "stream": True}), 20, 101,
               data_events=103, first_token_seconds=0.5, seconds=2.5)  # fmt: skip
    text = [{"role": "user", "content": "Tell me all about Paris. " * 100}]
    call = ask(known, {"messages": text, "stream": stream})
    assert known.cut(call, data_events=0, seconds=0.1, whole=True) == Usage(prompt=call.prompt)
    assert known.cut(call, data_events=0, seconds=1.5, whole=True).completion == pytest.approx(50, abs=2)
    assert known.cut(call, data_events=0, seconds=1.5, whole=True, answer_bytes=20).completion == 20
    if stream:
        assert known.cut(call, data_events=11, seconds=9.0, whole=True).completion == 10


@given(HOSTILE, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**6), st.floats(0, 1e6))
def test_nothing_breaks_it(
    body: dict[str, Any], prompt: int, completion: int, events: int, seconds: float
) -> None:
    """Whatever a body holds, and whatever an engine tells of it."""
    known = Estimates()
    for route in OF_ENGINES:
        call = ask(known, body, route)
        assert call.tokens >= (1 if call.route.usage else 0)
        finish(known, call, prompt, completion, data_events=events, seconds=seconds)
        used = known.cut(call, data_events=events, seconds=seconds)
        assert 0 <= used.prompt <= call.prompt
        assert used.completion >= 0


def test_what_is_kept_is_bounded() -> None:
    """Of keys and models without end those are remembered that were used last."""
    known = Estimates(most_models=10, most_pairs=10)

    def call(key: str, model: str) -> Ask:
        return known.ask(HELLO, route=BY_TEMPLATE[CHAT], model=model, key_id=key, choices=1)

    for number in range(100):
        for key, model in (("often", "often"), (f"key-{number}", f"m-{number}")):
            finish(known, call(key, model), 100, 5)
    assert (len(known._pairs), len(known._models)) == (10, 10)
    assert call("often", "often").prompt == pytest.approx(100, rel=0.2)
    assert call("often", "new").prompt < 50


def test_a_small_call_costs_microseconds() -> None:
    """Each request pays for it."""
    known, body = Estimates(), {**HELLO, "max_tokens": 100}

    def cpu_seconds() -> float:
        started = time.process_time()
        for _ in range(500):
            finish(known, ask(known, body), 20, 5)
        return (time.process_time() - started) / 500

    assert least(cpu_seconds, QUICK_SECONDS) < QUICK_SECONDS
