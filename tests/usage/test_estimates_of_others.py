"""Estimates learn from all keys of a model, and none of them can spoil the others'."""

import random
import string

import pytest

from gateway.usage import Estimates
from tests.usage.corpus import Body, Corpus
from tests.usage.estimating import HELLO, ask, finish


def noise(draw: random.Random) -> str:
    """Words that are none: about thrice as many tokens as English of the same length."""
    letters = string.ascii_lowercase
    return " ".join("".join(draw.choices(letters, k=draw.randint(4, 9))) for _ in range(200))


def test_one_key_cannot_spoil_the_estimates_of_others() -> None:
    """It floods the model with what is unlike anybody's prompts, and is told apart."""
    known, corpus, draw = Estimates(), Corpus(), random.Random(4)  # noqa: S311  the same each time

    def tokens(body: Body) -> int:
        return 10 + round(sum(len(message["content"]) for message in body["messages"]) / 4.2)

    for _ in range(70):
        body = corpus.english(draw)
        finish(known, ask(known, body), tokens(body))
    for _ in range(1500):
        text = noise(draw)
        body = {"messages": [{"role": "user", "content": text}]}
        finish(known, ask(known, body, key="flood"), len(text) * 2 // 3)
    held_out = [corpus.english(draw) for _ in range(20)]
    errors = [abs(ask(known, body).prompt / tokens(body) - 1) for body in held_out]
    assert sum(errors) / len(errors) < 0.2
    assert ask(known, body, key="flood").prompt > ask(known, body).prompt


@pytest.mark.parametrize("first", [30, 100])
@pytest.mark.parametrize(("hidden", "flood"), [(500, 1), (500, 20), (10_000, 1), (10_000, 20)])
def test_tokens_that_no_shape_shows_reach_no_other_key(first: int, hidden: int, flood: int) -> None:
    """Another key's calls hold far more than their bodies tell: they teach that key's habit alone."""
    known, draw = Estimates(), random.Random(3)  # noqa: S311  the same each time

    def said(times: int) -> Body:
        return {"messages": [{"role": "user", "content": "hello my friend, what is new? " * times}]}

    def honest() -> float:
        times = draw.randint(1, 40)
        call = ask(known, said(times), key="honest")
        finish(known, call, 10 + 8 * times)
        return abs(call.prompt / (10 + 8 * times) - 1)

    for _ in range(first):
        honest()
    errors = []
    for _ in range(150):
        for _ in range(flood):
            finish(known, ask(known, said(1), key="hides"), 18 + hidden)
        errors.append(honest())
    assert sum(errors) / len(errors) < 0.05
    assert ask(known, said(1), key="new").prompt in (17, 18, 19)
    assert ask(known, said(1), key="hides").prompt > 60


def test_a_model_that_changes_for_all_is_learned() -> None:
    """Its template brings a system message from now on: by the weights too, since it is no key's habit."""
    known = Estimates()
    for brought in (0, 200):
        for number in range(600):
            finish(known, ask(known, HELLO, key=f"key-{number % 3}"), 20 + brought)
    assert ask(known, HELLO, key="key-1").prompt == pytest.approx(220, rel=0.1)
    assert ask(known, HELLO, key="new").prompt > 60
