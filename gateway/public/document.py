"""The JSON object in a request's body, parsed once, strictly.

What an engine gets is the serialisation of what was parsed here, so nothing that two parsers could
understand differently may pass: duplicate names end here (the last wins), and integers beyond 64 bits,
NaN, lone surrogates, depth over 128 and anything that is not UTF-8 are refused.
"""

import re
from codecs import BOM_UTF8
from typing import Any

import orjson

from gateway.errors import InvalidJson, RequestTooLarge, quote
from gateway.public.place import path_to

MAX_DEPTH = 128
MAX_WORK = (
    3_000_000  # half a second of parsing on a slow core; 256 prompts of 8192 token ids are two thirds of it
)
MAX_LOOKS = 250_000  # strings and long integers: some fifty milliseconds
SURELY_LITTLE_BYTES = 262_144
_FIRST_DOUBTFUL = float(2**63)
_INTEGER = re.compile(rb"(?<![\d.eE+-])-?\d{19,}+(?![.eE])")
_STRING_OR_INTEGER = re.compile(rb'"(?:[^"\\]++|\\.)*+"|(?P<integer>' + _INTEGER.pattern + rb")", re.DOTALL)
_NO_NUMBER = re.compile(r"[+-]?(?:NaN|Infinity)\b")
_NUMBER = re.compile(r"-?[\d.eE+-]+")
_TOO_LARGE = "infinity"  # orjson's word for a number beyond a double


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises InvalidJson that says where it is broken, RequestTooLarge for more values than are worth the time.
    """
    if len(raw) > SURELY_LITTLE_BYTES:
        _check_work(raw)
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _broken(raw, error) from error
    if type(body) is not dict:
        raise InvalidJson(f"The body must be a JSON object; it is {_kind(body)}.")
    if _doubtful_numbers(body):
        _check_integers(raw)
    return body


def write(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """The body for an engine and its content type."""
    return orjson.dumps(body), b"application/json"


def _broken(raw: bytes, error: orjson.JSONDecodeError) -> InvalidJson:
    if not raw.strip():
        return InvalidJson("The body is empty; it must be a JSON object.")
    if raw.startswith(BOM_UTF8):
        return InvalidJson(
            "The body begins with a byte order mark; it must be a JSON object in UTF-8 without one."
        )
    number = _NO_NUMBER.match(error.doc, error.pos) or (
        _TOO_LARGE in error.msg and _NUMBER.match(error.doc, error.pos)
    )
    if not number:
        return InvalidJson(f"The body is not valid JSON: {error}.")
    near = error.pos < SURELY_LITTLE_BYTES  # further on it takes long to say where that is
    return InvalidJson(
        f"The body holds {quote(number[0])}, which is no finite number.",
        param=path_to(raw, len(error.doc[: error.pos].encode())) if near else None,
    )


def _check_work(raw: bytes) -> None:
    """While a body is parsed everybody waits: ten million empty lists fit into 32 MB and take eight seconds.

    An object, a list or a name costs four times a plain value. What stands inside of strings is counted
    too; a text that is refused for it would be longer than any model's context.
    """
    containers, commas = raw.count(b"{") + raw.count(b"["), raw.count(b",")
    if 4 * (containers + commas) > MAX_WORK and 4 * (containers + raw.count(b":")) + commas > MAX_WORK:
        raise RequestTooLarge("The body holds more values than this gateway takes in one request.")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _doubtful_numbers(body: dict[str, Any]) -> bool:
    """Walk the parsed body without recursion. Raises InvalidJson on depth over 128.

    Answers whether a float stands there that an integer beyond 64 bits may have become.
    """
    doubtful = False
    level: list[Any] = [body]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")
        below: list[Any] = []
        for value in level:
            for item in value.values() if type(value) is dict else value:
                kind = type(item)
                if kind is dict or kind is list:
                    below.append(item)
                elif kind is float and not -_FIRST_DOUBTFUL < item < _FIRST_DOUBTFUL:
                    doubtful = True
        level = below
    return doubtful


def _check_integers(raw: bytes) -> None:
    if not _INTEGER.search(raw):
        return
    for count, found in enumerate(_STRING_OR_INTEGER.finditer(raw)):
        if count == MAX_LOOKS:
            raise RequestTooLarge("The body holds too many values beside numbers beyond 64 bits.")
        integer = found["integer"]
        if integer is not None and not -(2**63) <= int(integer[:40]) < 2**64:
            raise InvalidJson("The body holds an integer beyond 64 bits.", param=path_to(raw, found.start()))
