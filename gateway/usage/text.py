"""What stands in a text, counted by kinds of characters: what a prompt's tokens are estimated from.

Every count is a pass in C over the bytes, so that all of them cost a few nanoseconds a character; of a large
text, or of very many, evenly spaced pieces stand for the rest.
"""

from collections.abc import Sequence

MOST_CHARACTERS = 4096  # beyond it pieces are looked at, which are as long together
_PIECE_CHARACTERS = 256
_LEAST_PIECE_CHARACTERS = 32

# Each byte of UTF-8 is named by its kind; the first byte of a longer character tells its script.
_SMALL, _CAPITAL, _DIGIT, _SPACE, _LINE, _MARK, _INNER = b"aA0 \n.~"
_FIRST_BYTES = (
    (0xC2, 0xCA, 0x80),  # Latin with accents
    (0xCA, 0xE0, 0x81),  # Greek, Cyrillic, Hebrew, Arabic
    (0xE0, 0xE2, 0x82),  # South and South-East Asia
    (0xE2, 0xE3, 0x83),  # punctuation and symbols
    (0xE3, 0xE4, 0x84),  # kana, and the punctuation of East Asia
    (0xE4, 0xEA, 0x85),  # Han
    (0xEA, 0xEF, 0x86),  # Hangul
    (0xEF, 0xF0, 0x87),  # full-width forms
    (0xF0, 0xF5, 0x88),  # emoji, rare Han
)
_SCRIPTS = tuple(bytes([kind]) for _, _, kind in _FIRST_BYTES)
_MOST = b"a ~"  # nearly all of a text
_LONG_WORD = b"a" * 10  # English has few such; of noise and base64 it is the mark
ASCII_KINDS = 8
KINDS = ASCII_KINDS + len(_SCRIPTS)


def _kinds() -> bytes:
    table = bytearray([_INNER]) * 256
    for byte in range(0x80):
        character = chr(byte)
        if character.isalpha():
            table[byte] = _CAPITAL if character.isupper() else _SMALL
        elif character.isdigit():
            table[byte] = _DIGIT
        elif character == "\n":
            table[byte] = _LINE
        else:
            table[byte] = _SPACE if character.isspace() else _MARK
    for first, end, kind in _FIRST_BYTES:
        table[first:end] = bytes([kind]) * (end - first)
    return bytes(table)


_KIND = _kinds()


def count(texts: Sequence[str]) -> tuple[list[float], float]:
    """How much of each of the `KINDS` kinds the texts hold together, and how many bytes they have.

    Of ASCII alone only the first `ASCII_KINDS` are told.
    The kinds: letters, single spaces, runs of ten letters, capitals, digits, line ends, pairs of spaces,
    marks, and the characters of each group of scripts.
    """
    total = sum(map(len, texts))
    if total <= MOST_CHARACTERS:
        return _count("\n".join(texts))
    pieces = _pieces(texts, total)
    factor = total / sum(map(len, pieces))
    counts, size_bytes = _count("\n".join(pieces))
    return [factor * number for number in counts], factor * size_bytes


def _count(text: str) -> tuple[list[float], float]:
    kinds = text.encode("utf-8", "replace").translate(_KIND)
    spaces, pairs, long_words = kinds.count(b" "), kinds.count(b"  "), kinds.count(_LONG_WORD)
    number = kinds.translate(None, _MOST).count
    capitals, digits, lines, marks = number(b"A"), number(b"0"), number(b"\n"), number(b".")
    is_ascii = len(kinds) == len(text)
    small = len(kinds) - capitals - spaces - digits - lines - marks if is_ascii else kinds.count(b"a")
    counts: list[float] = [
        small + capitals, spaces - 2 * pairs, long_words, capitals, digits, lines, pairs, marks,
    ]  # fmt: skip
    if not is_ascii:
        counts += map(number, _SCRIPTS)
    return counts, len(kinds)


def _pieces(texts: Sequence[str], total: int) -> list[str]:
    """Pieces at even distances in the texts laid end to end, none longer than most of the texts are."""
    length = max(_LEAST_PIECE_CHARACTERS, min(_PIECE_CHARACTERS, total // len(texts)))
    stride = total * length / MOST_CHARACTERS
    pieces = []
    position, due = 0, 0.0
    for text in texts:
        end = position + len(text)
        while due < end:
            start = int(due) - position
            pieces.append(text[start : start + length])
            due += stride
        position = end
    return pieces
