"""JSON objects that a key carries: parsed strictly, bounded, defaults and force judged as in the settings."""

import json
from typing import Any

import orjson

from gateway.errors import InvalidJson, quote
from gateway.settings import faults

MAX_BYTES = 65536
MAX_DEPTH = 128


def parse(text: str | bytes) -> object:
    """The JSON value in `text`; of duplicate names the last wins.

    Raises InvalidJson for what is not JSON in UTF-8, NaN, lone surrogates and integers beyond 64 bits.
    """
    try:
        orjson.loads(text)  # strict in all but large integers, which it would round
        value: object = json.loads(text)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidJson(f"Not valid JSON: {error}.") from error
    return value


def problem(value: object) -> str | None:
    """Why `value` cannot be a key's metadata; None if it can: a JSON object of up to 64 KiB."""
    if not isinstance(value, dict):
        return f'must be a JSON object such as {{"a": 1}}; got {quote(value)}'
    if is_deep(value):
        return f"must not be nested deeper than {MAX_DEPTH} levels"
    try:
        size_bytes = len(orjson.dumps(value))
    except TypeError as error:
        return f"holds what JSON cannot carry: {error}"
    if size_bytes > MAX_BYTES:
        return f"must be at most {MAX_BYTES} bytes as JSON; it has {size_bytes}"
    return None


def parameters_problem(value: object) -> str | None:
    """Why `value` cannot be a key's defaults or force; None if it can."""
    if (found := problem(value)) or not isinstance(value, dict):
        return found
    wrong = [f"{'.'.join(map(str, where))} {text}" for where, text in faults(value)]
    return f"cannot be taken: {'; '.join(wrong)}" if wrong else None


def is_deep(value: dict[str, Any]) -> bool:
    """Whether objects and lists are nested deeper than a body may be."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        children = (item.values() if isinstance(item, dict) else item for item in level)
        level = [child for items in children for child in items if isinstance(child, dict | list)]
        if not level:
            return False
    return True
