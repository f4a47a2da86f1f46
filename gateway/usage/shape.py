"""What the prompts of one call are made of, in numbers: the features that tokens are estimated from."""

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from gateway.usage import text

MOST_ITEMS = 4096  # of a body's lists that are looked at, or some times as many where lists lie in lists
_FEWEST_ITEMS = 2  # of an inner list, however many there are

# Beside the kinds of characters. A chat is a prompt that a template makes, a prompt one that none does;
# a chat without a system message is counted too, since many templates bring one of their own. Of what stands
# beside the messages a model's template renders the same each time: all of it as JSON, or nothing.
CHATS, UNSYSTEMED, MESSAGES, PROMPTS, TOOLED, JSON_BYTES, IMAGES, SOUNDS, RENDERED_BYTES = range(9)
PARTS = 9
_NO_KINDS = (0,) * text.KINDS


class Shape:
    """The features of one call's prompts, all of them together.

    `kinds`: characters, as `text.count` tells them, the last ones left out where there are none of them.
    `parts`: what else there is, by the names above.
    `ids`: token ids, which need no estimate, of `id_prompts`. `text_bytes`: more tokens no text can have.
    Numbers are no whole ones where some items of a long list stand for others.
    """

    __slots__ = ("_texts", "_thoughts", "id_prompts", "ids", "kinds", "parts", "text_bytes")

    def __init__(self) -> None:
        self.kinds: Sequence[float] = _NO_KINDS
        self.parts: list[float] = [0] * PARTS
        self.ids: float = 0
        self.id_prompts: float = 0
        self.text_bytes: float = 0
        self._texts: list[str] = []
        self._thoughts: list[str] = []

    @property
    def features(self) -> list[float]:
        """Both kinds of features, in their order."""
        return [*self.kinds, *_NO_KINDS[len(self.kinds) :], *self.parts]

    @property
    def prompts(self) -> float:
        """How many prompts there are."""
        return max(1, self.parts[PROMPTS] + self.parts[CHATS] + self.id_prompts)

    def write(self, *values: str) -> None:
        """Texts that are prompt."""
        self._texts += values

    def think(self, value: str) -> None:
        """A thought of the model's, which templates leave out once a user has spoken again."""
        self._thoughts.append(value)

    def hear_user(self) -> None:
        """A user speaks."""
        if self._thoughts:
            self._thoughts.clear()

    def close(self) -> None:
        """Count the texts, which are not kept."""
        texts = self._texts + self._thoughts if self._thoughts else self._texts
        if texts:
            counts, size_bytes = text.count(texts)
            self.kinds = counts if not self.text_bytes else _sum(self.kinds, counts, 1)
            self.text_bytes += size_bytes
            self._texts.clear()
            self._thoughts.clear()

    def add(self, other: "Shape", factor: float) -> None:
        """Take in another, so many times."""
        other.close()
        self.kinds = _sum(self.kinds, other.kinds, factor)
        self.parts = _sum(self.parts, other.parts, factor)
        self.ids += factor * other.ids
        self.id_prompts += factor * other.id_prompts
        self.text_bytes += factor * other.text_bytes


Read: TypeAlias = Callable[[Any, Shape, int], None]
"""Reads one item into a shape, of its own lists about so many items."""


def each(items: list[Any], shape: Shape, quota: int, read: Read) -> None:
    """Read all items, or of more than `quota` evenly spaced ones that stand for the rest."""
    number = len(items)
    if number <= quota:
        inner = max(_FEWEST_ITEMS, quota // number) if number else 0
        for item in items:
            read(item, shape, inner)
        return
    picked = items[:: -(-number // quota)]
    sample = Shape()
    for item in picked:
        read(item, sample, _FEWEST_ITEMS)
    shape.add(sample, number / len(picked))


def _sum(values: Iterable[float], others: Iterable[float], factor: float) -> list[float]:
    return [value + factor * other for value, other in zip_longest(values, others, fillvalue=0)]
