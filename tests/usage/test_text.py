# ruff: noqa: RUF001  full-width marks are a kind of their own
"""Characters are counted by kinds, quickly, and those of a large text by pieces of it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.usage import text
from tests.running import least

QUICK_SECONDS = 0.02  # of the CPU; it is a hundredth of that
LETTERS, SPACES, LONG, CAPITALS, DIGITS, LINES, PAIRS, MARKS = range(8)
KANA, HAN, HANGUL = 12, 13, 14


def counted(written: str) -> dict[int, float]:
    """The kinds that a text has."""
    counts, _ = text.count([written])
    return {kind: number for kind, number in enumerate(counts) if number}


@pytest.mark.parametrize(
    ("written", "kinds"),
    [
        ("", {}),
        ("Hello big world", {LETTERS: 13, CAPITALS: 1, SPACES: 2}),
        ("a    b\n", {LETTERS: 2, PAIRS: 2, LINES: 1}),
        ("f(x_1) == 42", {LETTERS: 2, MARKS: 5, DIGITS: 3, SPACES: 2}),
        ("abcdefghij" * 3, {LETTERS: 30, LONG: 3}),
        ("漢字かな한글", {HAN: 2, KANA: 2, HANGUL: 2}),
        ("año", {LETTERS: 2, 8: 1}),
        ("Привет", {9: 6}),
        ("नम", {10: 2}),
        ("“—”", {11: 3}),
        ("，！", {15: 2}),
        ("🎉🎉", {16: 2}),
    ],
)
def test_each_character_is_of_one_kind(written: str, kinds: dict[int, float]) -> None:
    """Capitals and long words are letters too."""
    assert counted(written) == kinds


@given(st.lists(st.text()))
def test_kinds_are_never_less_than_nothing_nor_more_than_all_bytes(texts: list[str]) -> None:
    """Texts are laid end to end, a line end between two."""
    counts, size_bytes = text.count(texts)
    assert len(counts) == (text.ASCII_KINDS if "".join(texts).isascii() else text.KINDS)
    assert min(counts) >= 0
    assert size_bytes == len("\n".join(texts).encode())
    assert sum(counts) - counts[CAPITALS] - counts[LONG] <= size_bytes


@given(st.text(), st.text())
def test_more_text_is_never_less_of_any_kind(first: str, second: str) -> None:
    """But for spaces, of which two single ones may become a pair."""
    before, after = text.count([first])[0], text.count([first + second])[0]
    for kind in set(range(len(before))) - {SPACES}:
        assert after[kind] >= before[kind]
    assert after[SPACES] + 2 * after[PAIRS] >= before[SPACES] + 2 * before[PAIRS]


@pytest.mark.parametrize("parts", [1, 7, 5000])
def test_a_large_text_is_counted_by_its_pieces(parts: int) -> None:
    """Within a few percent, however many texts it comes in."""
    whole = "The quick brown fox jumps over 12 lazy dogs, again.\n" * 20_000
    length = len(whole) // parts + 1
    texts = [whole[start : start + length] for start in range(0, len(whole), length)]
    counts, size_bytes = text.count(texts)
    assert size_bytes == pytest.approx(len(whole), rel=0.05)
    assert counts[LETTERS] == pytest.approx(39 * 20_000, rel=0.05)
    assert counts[DIGITS] == pytest.approx(2 * 20_000, rel=0.1)


@pytest.mark.parametrize(
    "texts",
    [["a" * 32_000_000], ["漢" * 10_000_000], [" " * 32_000_000], ["x"] * 4096, ["abc" * 5000] * 2000],
    ids=["letters", "han", "spaces", "many", "many large"],
)
def test_no_text_takes_long(texts: list[str]) -> None:
    """The event loop waits for it: no other caller's token passes meanwhile."""

    def cpu_seconds() -> float:
        started = time.process_time()
        text.count(texts)
        return time.process_time() - started

    assert least(cpu_seconds, QUICK_SECONDS) < QUICK_SECONDS
