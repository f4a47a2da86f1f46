"""A model's weights: taught by calls, bounded, and no key's to spoil."""

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routes import BY_TEMPLATE
from gateway.usage import bodies
from gateway.usage.prompt import Habit, Keys, Weights
from gateway.usage.shape import Shape
from tests.usage.corpus import Body, Corpus

CHAT, TEXT = BY_TEMPLATE["/v1/chat/completions"], BY_TEMPLATE["/v1/completions"]
TOKENS = st.floats(0, 1e9)


def prompt(text: str) -> Shape:
    """The shape of a text alone."""
    return bodies.shape({"prompt": text}, TEXT)


def chat(body: Body) -> Shape:
    return bodies.shape(body, CHAT)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog.", 10, 20),
        ("for number in range(10):\n    print(number)\n", 12, 25),
        ("这座城市的春天来得很早。", 12, 30),
        ("x", 1, 4),
    ],
)
def test_before_any_call_the_guess_is_sane_and_rather_high(text: str, least: int, most: int) -> None:
    """At least what the tokenizers of today make of it, at most twice that."""
    assert least <= Weights().tokens(prompt(text)) <= most


@given(st.text(), st.text(), st.lists(st.tuples(st.text(), TOKENS), max_size=5))
def test_more_text_is_never_fewer_tokens(first: str, second: str, calls: list[tuple[str, float]]) -> None:
    """Whatever was learned; two spaces alone can be fewer than one and one."""
    weights = Weights()
    for text, tokens in calls:
        weights.learn(prompt(text), tokens)
    longer = weights.tokens(prompt(first + second.replace(" ", "a")))
    assert longer >= weights.tokens(prompt(first)) - 1e-6


@given(st.lists(st.tuples(st.text(), TOKENS), max_size=20), st.text())
def test_no_lesson_makes_an_estimate_absurd(calls: list[tuple[str, float]], text: str) -> None:
    """Not below nothing, and not above the bytes of the text and a constant."""
    weights = Weights()
    for taught, tokens in calls:
        weights.learn(prompt(taught), tokens)
    assert 0 <= weights.tokens(prompt(text)) <= len(text.encode()) + 500


def test_a_text_has_no_more_tokens_than_bytes() -> None:
    """Whatever an engine has counted of others."""
    weights = Weights()
    for _ in range(300):
        weights.learn(prompt("a " * 100), 600)
    assert weights.tokens(prompt("a " * 1000)) - weights.tokens(prompt("")) <= 2000


def test_one_wrong_call_moves_little_of_what_many_have_taught() -> None:
    """An engine's slip, or a prompt like no other."""
    weights, text = Weights(), prompt("The quick brown fox jumps over the lazy dog. " * 10)
    for _ in range(60):
        weights.learn(text, 100)
    before = weights.tokens(text)
    assert before == pytest.approx(100, rel=0.03)
    for tokens in (300, 1_000_000):
        weights.learn(text, tokens)
        assert weights.tokens(text) < 1.02 * before


def test_a_new_tokenizer_under_the_same_name_is_learned() -> None:
    """The operator changes the weights; the calls that come after teach anew."""
    weights, text = Weights(), prompt("The quick brown fox jumps over the lazy dog. " * 10)
    for tokens in [100] * 500 + [200] * 200:
        weights.learn(text, tokens)
    assert weights.tokens(text) == pytest.approx(200, rel=0.1)


def test_an_image_is_learned_as_what_it_costs() -> None:
    """Whatever text stands beside it."""
    weights, draw = Weights(), random.Random(1)  # noqa: S311  the same each time
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for _ in range(50):
        words, images = draw.randint(5, 200), draw.randint(0, 3)
        parts = [*[image] * images, {"type": "text", "text": "word " * words}]
        weights.learn(chat({"messages": [{"role": "user", "content": parts}]}), 10 + words + 256 * images)
    with_one = chat(
        {"messages": [{"role": "user", "content": [image, {"type": "text", "text": "word " * 20}]}]}
    )
    assert weights.tokens(with_one) == pytest.approx(286, rel=0.1)


def test_odd_calls_teach_only_what_is_not_known_yet() -> None:
    """What hides tokens does not make every text dearer; the first images may well be dear."""
    weights = Weights()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text, shown = prompt("word " * 100), chat({"messages": [{"role": "user", "content": [image]}]})
    for _ in range(60):
        weights.learn(text, 110)
    known = weights.tokens(text)
    for _ in range(300):
        weights.learn(text, 10_000, is_odd=True)
    assert weights.tokens(text) == known
    for _ in range(60):
        weights.learn(shown, 5000, is_odd=True)
    assert weights.tokens(shown) > 5000 / 2


def test_odd_is_what_is_unlike_the_other_keys() -> None:
    """And like no habit; not what most keys send, nor what a key sends that is alone."""
    keys = Keys()
    assert not keys.is_odd("alone", 10, 10_000)
    assert not keys.is_odd("a", 100, 100)
    assert keys.is_odd("alone", 10, 10_000)
    assert not keys.is_odd("alone", 100, 390)
    assert not keys.is_odd("b", 100, 90)
    assert keys.is_odd("a", 100, 10)
    for key in ("a", "b"):
        keys.is_odd(key, 10, 1000)
    assert not keys.is_odd("c", 10, 1000)


def test_of_two_keys_that_with_fewer_tokens_is_believed() -> None:
    """Whoever came first: what one hides does not become what all are thought to have."""
    keys = Keys()
    assert not keys.is_odd("hides", 10_000, 10_000)
    assert not keys.is_odd("plain", 10_000, 10)
    assert keys.is_odd("hides", 10_000, 10_000) is False  # as the weights say, for now
    assert keys.is_odd("hides", 1000, 10_000)


def test_of_keys_without_end_the_last_ones_are_remembered() -> None:
    """As many as a median needs."""
    keys = Keys()
    for number in range(1000):
        keys.is_odd(str(number), 1, 1)
    assert len(keys._ratios) == 31


def test_a_habit_is_how_one_keys_prompts_differ() -> None:
    """It follows within some calls, and is bounded."""
    habit = Habit()
    for _ in range(60):
        habit.learn(100, 150)
    assert habit.factor == pytest.approx(1.5, rel=0.02)
    for tokens, bound in ((0, 0.25), (10**12, 4.0)):
        for _ in range(300):
            habit.learn(100, tokens)
        assert habit.factor == pytest.approx(bound, rel=0.02)


def tokenizer(letters: int, digits: int, wide: float) -> Callable[[Body], float]:
    """A made-up model: tokens of so many letters or digits at most, `wide` for a character beyond ASCII."""
    token = re.compile(rf"[A-Za-z]{{1,{letters}}}|[0-9]{{1,{digits}}}|[!-/:-@[-`{{-~]|\s{{2,}}|\n")

    def tokens(body: Body) -> float:
        total = 20.0
        for message in body["messages"]:
            text = message["content"]
            total += 5 + len(token.findall(text)) + wide * sum(not one.isascii() for one in text)
        return total

    return tokens


@pytest.mark.parametrize("model", [(6, 3, 0.7), (2, 1, 3.0), (4, 1, 2.1), (9, 3, 1.0)])
def test_fifty_mixed_calls_teach_a_model(model: tuple[int, int, float]) -> None:
    """However its tokenizer differs from the first guess; the real ones are in tests/real."""
    corpus, draw, weights, count = Corpus(), random.Random(2), Weights(), tokenizer(*model)  # noqa: S311
    classes = list(corpus.classes.values())
    for number in range(50):
        body = classes[number % len(classes)](draw)
        weights.learn(chat(body), count(body))
    for write in classes:
        bodies_held_out = [write(draw) for _ in range(20)]
        errors = [abs(weights.tokens(chat(body)) / count(body) - 1) for body in bodies_held_out]
        assert sum(errors) / len(errors) <= 0.15
