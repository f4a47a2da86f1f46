"""One thing that is wrong with a setting, before it is known who wrote it where."""

from typing import NamedTuple

Where = tuple[str | int, ...]
"""A setting as names and indexes: `("models", 0, "engines", 1)`."""


class Fault(NamedTuple):
    """`text` follows the setting's name in a sentence: it says what is wrong and the mend."""

    where: Where
    text: str
