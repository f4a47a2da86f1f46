"""How large the parts of a request may be that cost an engine more than their bytes.

A schema, a grammar or a regular expression is compiled into an automaton before the first token, on the
engine's own processor while other requests wait; stop strings and word lists are looked for after each
token. These bounds are far above what clients send, so they are constants and no settings.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gateway.errors import InvalidRequest
from gateway.routes import Route

MAX_SCHEMA_BYTES = 65_536  # xgrammar compiles 500 properties of 100 bytes in 0.4 s, 1500 in 4 s
MAX_TOOLS = 512  # OpenAI takes 128; agents with many tool servers send more
MAX_TOOLS_BYTES = 524_288  # all of them are prompt as well, some 130,000 tokens
MAX_PATTERN_CHARACTERS = 4096  # the size of its automaton can grow exponentially with it
MAX_STOPS = 32  # OpenAI and vLLM take 4 unless told otherwise; completion in editors sends up to 18
MAX_STOP_CHARACTERS = 1024  # a stream is held back by as much as the longest one
MAX_WORDS = 1024  # vLLM takes 128 bad words
MAX_TOKEN_IDS = 16_384  # each becomes a part of a mask over the vocabulary

_STOPS = ("stop", "stop_sequences")
_CONSTRAINTS = ("response_format", "structured_outputs", "text", "output_config", "json_schema", "grammar")
_LISTS = {
    "bad_words": MAX_WORDS,
    "stop_token_ids": MAX_TOKEN_IDS,
    "allowed_token_ids": MAX_TOKEN_IDS,
    "logit_bias": MAX_TOKEN_IDS,
}
_FIELDS = frozenset({*_STOPS, *_CONSTRAINTS, *_LISTS, "tools"})


def check(body: Mapping[str, Any], route: Route) -> None:
    """Raise InvalidRequest, naming the field, for more than an engine should have to compile or look for."""
    if not (route.generates or route.has_template):
        return
    if route.dialect == "messages":
        _check_tools(list(_added(body.get("messages"))), "messages")
    if _FIELDS.isdisjoint(body):
        return
    for field in _STOPS:
        if body.get(field) is not None:
            _check_stops(body[field], field)
    for field, most in _LISTS.items():
        value = body.get(field)
        if isinstance(value, list | dict) and len(value) > most:
            raise InvalidRequest(
                f"'{field}' may hold up to {most} entries; it holds {len(value)}.", param=field
            )
    for field in _CONSTRAINTS:
        if type(body.get(field)) in (dict, str):
            _check_bytes(body[field], field, MAX_SCHEMA_BYTES)
    _check_patterns(body.get("structured_outputs"))
    if type(body.get("tools")) is list:
        _check_tools(body["tools"], "tools")


def _check_stops(stop: object, field: str) -> None:
    if type(stop) is not list:
        stop = [stop]
    if len(stop) > MAX_STOPS:
        raise InvalidRequest(
            f"'{field}' may list up to {MAX_STOPS} texts; it lists {len(stop)}.", param=field
        )
    for text in stop:
        if type(text) is str and len(text) > MAX_STOP_CHARACTERS:
            raise InvalidRequest(
                f"A text of '{field}' may have up to {MAX_STOP_CHARACTERS} characters; one has {len(text)}.",
                param=field,
            )


def _check_bytes(value: object, field: str, most: int) -> None:
    size_bytes = len(orjson.dumps(value))
    if size_bytes > most:
        raise InvalidRequest(
            f"'{field}' may have up to {most} bytes as JSON; it has {size_bytes}.", param=field
        )


def _check_patterns(constraint: object) -> None:
    if type(constraint) is not dict:
        return
    for name in ("regex", "whitespace_pattern"):
        pattern = constraint.get(name)
        if type(pattern) is str and len(pattern) > MAX_PATTERN_CHARACTERS:
            raise InvalidRequest(
                f"A regular expression may have up to {MAX_PATTERN_CHARACTERS} characters; "
                f"this one has {len(pattern)}.",
                param=f"structured_outputs.{name}",
            )


def _added(messages: object) -> Iterator[Any]:
    """Tools that are brought in by a block of a message (`tool_addition`)."""
    for message in messages if type(messages) is list else ():
        content = message.get("content") if type(message) is dict else None
        for block in content if type(content) is list else ():
            if type(block) is dict and type(block.get("tool")) is dict:
                yield block["tool"]


def _check_tools(tools: list[Any], field: str) -> None:
    if len(tools) > MAX_TOOLS:
        raise InvalidRequest(
            f"'{field}' may bring up to {MAX_TOOLS} tools; there are {len(tools)}.", param=field
        )
    total_bytes = 0
    for number, size_bytes in enumerate(_sizes(tools)):
        total_bytes += size_bytes
        if size_bytes > MAX_SCHEMA_BYTES:
            raise InvalidRequest(
                f"A tool may have up to {MAX_SCHEMA_BYTES} bytes as JSON; this one has {size_bytes}.",
                param=f"tools[{number}]" if field == "tools" else field,
            )
    if total_bytes > MAX_TOOLS_BYTES:
        raise InvalidRequest(
            f"All tools in '{field}' may have {MAX_TOOLS_BYTES} bytes as JSON; they have {total_bytes}.",
            param=field,
        )


def _sizes(tools: list[Any]) -> Iterator[int]:
    whole_bytes = len(orjson.dumps(tools))
    if whole_bytes <= MAX_SCHEMA_BYTES:  # so is each of them then, and all is said
        yield whole_bytes
    else:
        yield from (len(orjson.dumps(tool)) for tool in tools)
