"""How many tokens a prompt has, estimated from its shape by weights that each model's calls teach.

    tokens = ids + habit x (min(bytes, sum of weight x characters of a kind) + sum of weight x parts)

The weights are learned call by call as in a Kalman filter whose state drifts slowly (recursive least squares
with a prior; Haykin, Adaptive Filter Theory, 5th edition, chapters 10 and 14). A first guess says how sure it
is of each weight; errors count relative to the prompt; what the calls so far could not tell apart is changed
together. So fifty calls of any mixture are enough, and there is nothing to ask an engine for.

Callers may be hostile or just odd: a step is bounded, each weight stays within what tokenizers do, and a key
whose prompts are unlike all others' teaches its own habit, by which its error no longer reaches the weights.
Calls further off than a habit may be teach the weights nothing that other calls have taught already.
"""

import math
import statistics
from collections import OrderedDict
from operator import mul
from typing import NamedTuple

from gateway.usage.shape import Shape

SETTLED_CALLS = 64  # from then on a key's habit is learned: before, it could not be told from a wrong guess
_RELATIVE_ERROR = 0.1  # of a prompt with the right weights, since no tokenizer is linear
_TOKENS_ERROR = 1.5
_MOST_DEVIATIONS = 3.0
_UNKNOWN = 2.0**2
_DRIFT = 0.0005  # of a first guess's variance, with each call
_HABIT_GAIN = 0.05
_MOST_HABIT = 4.0
_MOST_KEYS = 31


class _Guess(NamedTuple):
    """A weight before anything is learned, how far it may be off (one standard deviation), its bound."""

    weight: float
    deviation: float
    most: float


_KINDS = (
    _Guess(0.14, 0.1, 0.6),  # letters
    _Guess(0.6, 0.4, 2.0),  # single spaces: words
    _Guess(1.5, 1.0, 9.0),  # runs of ten letters: words that no vocabulary has
    _Guess(0.1, 0.2, 1.0),  # capitals
    _Guess(0.7, 0.3, 1.2),  # digits
    _Guess(0.6, 0.4, 1.2),  # line ends
    _Guess(0.2, 0.2, 1.0),  # pairs of spaces
    _Guess(0.7, 0.3, 1.2),  # marks
    _Guess(0.8, 0.5, 2.0),  # Latin with accents
    _Guess(0.7, 0.5, 2.0),  # Greek, Cyrillic, Hebrew, Arabic
    _Guess(1.3, 0.8, 3.0),  # South and South-East Asia
    _Guess(1.3, 0.8, 3.0),  # punctuation and symbols
    _Guess(1.2, 0.6, 3.0),  # kana
    _Guess(1.2, 0.6, 3.0),  # Han
    _Guess(1.2, 0.6, 3.0),  # Hangul
    _Guess(1.2, 0.6, 3.0),  # full-width forms
    _Guess(2.5, 1.0, 4.0),  # emoji, rare Han
)
_PARTS = (
    _Guess(6.0, 10.0, 500.0),  # chats
    _Guess(12.0, 20.0, 2000.0),  # chats without a system message
    _Guess(5.0, 3.0, 30.0),  # messages
    _Guess(2.0, 3.0, 500.0),  # prompts that no template makes
    _Guess(100.0, 80.0, 2000.0),  # prompts with tools
    _Guess(0.32, 0.15, 1.0),  # bytes of their JSON
    _Guess(1000.0, 800.0, 20_000.0),  # images
    _Guess(700.0, 800.0, 20_000.0),  # sounds
    _Guess(0.32, 0.15, 1.0),  # bytes of what templates may render beside messages
)
_GUESSES = _KINDS + _PARTS


class Weights:
    """What one model has taught of its prompts."""

    __slots__ = ("_covariance", "_kinds", "_parts", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._kinds = [guess.weight for guess in _KINDS]
        self._parts = [guess.weight for guess in _PARTS]
        self._covariance = [
            [guess.deviation**2 if row == column else 0.0 for column in range(len(_GUESSES))]
            for row, guess in enumerate(_GUESSES)
        ]

    def tokens(self, prompt: Shape) -> float:
        """The tokens of these prompts without those that came as ids, at most one for a byte of text."""
        text: float = sum(map(mul, self._kinds, prompt.kinds))
        parts: float = sum(map(mul, self._parts, prompt.parts))
        return min(text, prompt.text_bytes) + parts

    def learn(self, prompt: Shape, tokens: float, *, is_odd: bool = False) -> None:
        """These prompts had so many tokens without their ids.

        Odd ones teach only what is not known yet: where the weights may be off twice as far as right ones.
        """
        features = prompt.features
        present = [index for index, feature in enumerate(features) if feature]
        numbers = [features[index] for index in present]
        if not present:
            return
        weights = self._kinds + self._parts
        expected = sum(map(mul, weights, features))
        gains = [sum(map(mul, map(row.__getitem__, present), numbers)) for row in self._covariance]
        unsure = sum(map(mul, gains, features))
        if is_odd and unsure < _UNKNOWN * _noise(expected):
            return
        self.calls += 1
        variance = unsure + _noise(max(expected, tokens))
        most = _MOST_DEVIATIONS * math.sqrt(variance)
        self._move(weights, gains, max(-most, min(most, tokens - expected)) / variance)
        self._grow_surer(gains, variance, present)

    def _move(self, weights: list[float], gains: list[float], step: float) -> None:
        moved = [
            max(0.0, min(guess.most, weight + gain * step))
            for guess, weight, gain in zip(_GUESSES, weights, gains, strict=True)
        ]
        self._kinds, self._parts = moved[: len(_KINDS)], moved[len(_KINDS) :]

    def _grow_surer(self, gains: list[float], variance: float, present: list[int]) -> None:
        """A step of the covariance, and the drift of what was seen, by which nothing is ever learned out."""
        covariance = self._covariance
        for index, gain in enumerate(gains):
            if gain:
                share = gain / variance
                row = covariance[index]
                covariance[index] = [cell - share * other for cell, other in zip(row, gains, strict=True)]
        for index in present:
            first = _GUESSES[index].deviation ** 2
            covariance[index][index] = min(first, covariance[index][index] + _DRIFT * first)


def _noise(tokens: float) -> float:
    """The variance of a prompt's tokens with the right weights."""
    return (_RELATIVE_ERROR * tokens) ** 2 + _TOKENS_ERROR**2


class Keys:
    """Which calls of a model are unlike the other keys': prompts may hold tokens that no shape shows."""

    __slots__ = ("_ratios",)

    def __init__(self) -> None:
        self._ratios: OrderedDict[str, float] = OrderedDict()

    def is_odd(self, key_id: str, expected: float, tokens: float) -> bool:
        """Whether no habit explains that a key's prompts have so many tokens where weights say `expected`.

        Where most keys' last calls were so, they are not odd: the model has changed. Of two keys the one with
        fewer tokens is believed, since a prompt may hide tokens, but not lack them.
        """
        ratio = self._ratios[key_id] = tokens / max(1.0, expected)
        self._ratios.move_to_end(key_id)
        if len(self._ratios) > _MOST_KEYS:
            self._ratios.popitem(last=False)
        if _is_habitual(ratio):
            return False
        return not _is_habitual(ratio / statistics.median_low(self._ratios.values()))


def _is_habitual(ratio: float) -> bool:
    return 1.0 / _MOST_HABIT <= ratio <= _MOST_HABIT


class Habit:
    """How many times as many tokens one key's prompts have as the weights of its model say."""

    __slots__ = ("_calls", "factor")

    def __init__(self) -> None:
        self._calls = 0
        self.factor = 1.0

    def learn(self, expected: float, tokens: float) -> None:
        """Prompts had so many tokens where the weights alone said `expected`."""
        self._calls += 1
        gain = max(_HABIT_GAIN, 1.0 / (self._calls + 1))
        ratio = max(1.0 / _MOST_HABIT, min(_MOST_HABIT, tokens / max(1.0, expected)))
        self.factor += gain * (ratio - self.factor)
