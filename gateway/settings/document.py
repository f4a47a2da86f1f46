"""The TOML file: read, parsed, and each name with the line it stands on.

The standard library's parser keeps no positions. Lines are found by giving it one statement at a time:
the shortest run of lines that it accepts is a statement, so nothing of TOML's grammar is repeated here.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.settings.fault import Where

_POSITION = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values; `problems` says why there are none. Without a file, all is empty."""

    path: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    problems: tuple[str, ...] = ()


def read(path: Path, named_by: str) -> Document:
    """The file at `path`. `named_by` is who named it, for the message when it cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        return Document(path, problems=(f"{named_by}: {path} cannot be read: {error.strerror}",))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return Document(path, problems=(f"{path}, line {line}: not UTF-8; save the file as UTF-8",))
    text = text.replace("\r\n", "\n")
    try:
        return Document(path, tomllib.loads(text), text)
    except tomllib.TOMLDecodeError as error:
        return Document(path, problems=(_syntax(path, text, str(error)),))


def lines(text: str) -> dict[Where, int]:
    """The line, from 1, on which each name of a valid document is first written."""
    found: dict[Where, int] = {}
    here: Where = ()
    tables: dict[Where, int] = {}
    for number, statement in _statements(text):
        values = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            here = _table(values, tables)
            values = {}
        for length in range(1, len(here) + 1):
            found.setdefault(here[:length], number)
        for path in _paths(values, here):
            found.setdefault(path, number)
    return found


def _syntax(path: Path, text: str, message: str) -> str:
    position = _POSITION.search(message)
    line = position[1] if position and position[1] else text.rstrip("\n").count("\n") + 1
    return f"{path}, line {line}: not TOML: {_POSITION.sub('', message)}"


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement and the line it begins on; blank lines and comments are none."""
    pending, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        pending += line + "\n"
        try:
            empty = not tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        if not empty:
            yield first, pending
        pending, first = "", number + 1


def _table(header: dict[str, Any], tables: dict[Where, int]) -> Where:
    """The path that a header opens; `tables` counts the arrays of tables met so far."""
    path: Where = ()
    value: Any = header
    while value:
        if isinstance(value, list):
            tables[path] = tables.get(path, -1) + 1
            value = value[0]
            path = (*path, tables[path])
        else:
            if path in tables:
                path = (*path, tables[path])
            [(name, value)] = value.items()
            path = (*path, name)
    return path


def _paths(value: object, here: Where) -> Iterator[Where]:
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for name, item in items:
        yield (*here, name)
        yield from _paths(item, (*here, name))
