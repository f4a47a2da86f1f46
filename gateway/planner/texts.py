"""Names that others chose, as files take them: in quotes for TOML and YAML alike, and in comments."""

import json


def quoted(text: str) -> str:
    """A basic string of TOML, which is one of YAML too, of any text."""
    return "".join(_escaped(one) for one in json.dumps(text, ensure_ascii=False))


def printable(text: str) -> str:
    """The text for a comment: on one line, with a ? for what a file of text must not hold."""
    return "".join(one if one.isprintable() or _lone(one) else "?" for one in text)


def _escaped(one: str) -> str:
    return one if one.isprintable() or _lone(one) else f"\\U{ord(one):08x}"


def _lone(one: str) -> bool:
    """Half of a character, as Python reads a path that is not UTF-8: no escape stands for it."""
    return "\ud800" <= one <= "\udfff"
