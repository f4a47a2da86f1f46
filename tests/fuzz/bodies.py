"""Bodies for every route that takes JSON: a valid one each, and mutations that know its structure.

A body here is text, for what is wrong with it may be what no parser would keep: a name that comes twice,
a number
that no float holds, half a surrogate pair.
"""

import copy
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import zstandard
from hypothesis import strategies as st

from tests.callers import CALL, MODEL

TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
SAMPLING = {
    "temperature": 0.5, "top_p": 1.0, "seed": 7, "stop": ["\n"], "frequency_penalty": 0,
    "logit_bias": {"5": -1}, "top_k": 4, "min_p": 0.1, "user": "somebody", "metadata": {"a": "b"},
    "ignore_eos": False,
}  # fmt: skip
PARTS = [
    {"type": "text", "text": "hi"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
]
SEEDS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        **CALL, **SAMPLING, "n": 2, "stream": True, "stream_options": {"include_usage": True},
        "max_tokens": 3, "max_completion_tokens": 4, "logprobs": True, "top_logprobs": 2, "tools": [TOOL],
        "tool_choice": "auto",
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": PARTS},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s",
        "schema": {"type": "object"}}},
        "chat_template_kwargs": {"enable_thinking": True, "x": {"y": [1, 2.0, None]}},
        "reasoning_effort": "low",
    },
    "/v1/completions": {
        "model": MODEL, "prompt": ["a", "b"], **SAMPLING, "n": 1, "stream": False, "max_tokens": 3,
        "logprobs": 1, "echo": False, "suffix": None, "best_of": 1,
    },
    "/v1/responses": {
        "model": MODEL, "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "instructions": "x", "max_output_tokens": 4, "reasoning": {"effort": "low", "summary": None},
        "store": False, "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "stream": False, "text": {"format": {"type": "text"}}, "previous_response_id": None,
        "background": False, "include": [],
    },
    "/v1/messages": {
        "model": MODEL, "max_tokens": 5,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}], "stream": False,
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": [{"name": "f", "input_schema": {}}],
        "stop_sequences": ["x"], "tool_choice": {"type": "auto"}, "output_config": {"effort": "low"},
    },
    "/v1/messages/count_tokens": {
        "model": MODEL, "messages": [{"role": "user", "content": "hi"}], "system": "x",
        "thinking": {"type": "disabled"},
    },
    "/v1/embeddings": {"model": MODEL, "input": ["a", "b"], "encoding_format": "float", "dimensions": 8},
    "/v1/rerank": {"model": MODEL, "query": "a", "documents": ["b", "c"], "top_n": 1},
    "/v1/score": {"model": MODEL, "text_1": "a", "text_2": ["b"]},
    "/classify": {"model": MODEL, "input": ["a"]},
    "/pooling": {"model": MODEL, "input": "a", "task": "encode"},
    "/tokenize": {**CALL, "add_generation_prompt": True, "return_token_strs": True, "prompt": "a"},
    "/detokenize": {"model": MODEL, "tokens": [1, 2, 3]},
}  # fmt: skip
FORBIDDEN = (
    "priority",
    "cache_salt",
    "kv_transfer_params",
    "request_id",
    "vllm_xargs",
    "prompt_embeds",
    "chat_template",
)


@dataclass(frozen=True, slots=True)
class Raw:
    """A value that is written as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Twice:
    """An object with a name that comes twice, this value first."""

    first: Any
    object: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One call: a route, the text of its body, and how it is packed."""

    route: str
    text: bytes
    coding: str = ""

    def __repr__(self) -> str:
        return f"Case({self.route!r}, {self.text[:1500]!r} of {len(self.text)} bytes)"


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": lambda text: gzip.compress(text, mtime=0),
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


def nested(depth: int, opening: str, closing: str) -> Raw:
    """Brackets within brackets."""
    return Raw(opening * depth + "1" + closing * depth)


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 9, 99, 257, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, 1.0,
    -0.0, 1e-320, 1.7e308, "", " ", "x", "1", "-1", "NaN", "null", "auto", "none", "high", "\x00", "\x7f",
    "é", "\u2028", "\U0001f600", "\u202etxt", "a" * 20_000, "data:,", "http://169.254.169.254/",
    "file:///etc/passwd", [], [[]], [None], [1, "a", {}], ["x"] * 300, [0] * 300, {}, {"": 1}, {"a": None},
    {"type": "mcp"}, {"enable_thinking": "x"}, {"url": "http://[::1"}, {"__proto__": {"a": 1}},
    {f"k{number}": number for number in range(200)}, nested(100, "[", "]"), nested(126, '{"a":', "}"),
    nested(127, "[", "]"), nested(128, "[", "]"), nested(3000, "[", "]"), Raw("18446744073709551616"),
    Raw("-9223372036854775809"), Raw("1" * 400), Raw("1e999"), Raw("-1e999"), Raw("1E5"), Raw("NaN"),
    Raw("-Infinity"), Raw("01"), Raw("+1"), Raw("1."), Raw(".5"), Raw("0x1"), Raw("'a'"), Raw("undefined"),
    Raw('"\\ud800"'), Raw('"\\udc00\\ud800"'), Raw('"\\ud83d\\ude00"'), Raw('"\\x41"'), Raw('"\t"'),
    Raw('"\n"'), Raw(""), Raw("[1,]"), Raw('{"a":1,}'), Raw("1 2"), Raw("/**/1"), Raw('"\\u0000"'),
    Raw('"\\/"'), Raw("\ufeff1"), Raw("\u00a01"),
)  # fmt: skip
NAMES = (
    *FORBIDDEN,
    "model",
    "n",
    "stream",
    "stream_options",
    "",
    "Model",
    "model ",
    "zzz_future",
    "\u0000",
    "\U0001f600",
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values below this one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from places(item, (*path, name))


@st.composite
def case(draw: st.DrawFn) -> Case:
    """A valid body of some route, up to three of its places mutated."""
    route = draw(st.sampled_from(sorted(SEEDS)))
    body = copy.deepcopy(SEEDS[route])
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(list(places(body)) or [("model",)]))
        holder = body
        for name in path[:-1]:
            holder = holder[name]
        _mutate(draw, holder, path[-1])
    text = write(body).encode("utf-8", "surrogatepass")
    broken = (text[:-1], text + b"}", b"\xef\xbb\xbf" + text, text + b"\xff")
    text = draw(st.sampled_from([text] * 30 + list(broken)))
    return Case(route, text, draw(st.sampled_from(["", "", "", *PACKED])))


def _mutate(draw: st.DrawFn, holder: Any, name: Any) -> None:
    kind = draw(st.sampled_from(("odd", "odd", "odd", "delete", "wrap", "rename", "add", "twice")))
    odd = copy.deepcopy(draw(st.sampled_from(ODD)))
    if isinstance(holder, dict) and name not in holder:
        holder[name] = odd  # nothing else is left
    elif kind == "delete":
        del holder[name]
    elif kind == "wrap":
        holder[name] = [holder[name], odd]
    elif kind == "rename" and isinstance(holder, dict):
        holder[draw(st.sampled_from(NAMES))] = holder.pop(name)
    elif kind == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(NAMES))] = odd
    elif kind == "twice" and isinstance(holder[name], dict):
        holder[name] = Twice(odd, holder[name])
    else:
        holder[name] = odd


def write(value: Any) -> str:
    """JSON, and what only looks like it."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Twice):
        names = list(value.object)[:1] or [""]
        return "{" + ",".join([f"{json.dumps(names[0])}:{write(value.first)}", *_pairs(value.object)]) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(_pairs(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _pairs(value: dict[str, Any]) -> list[str]:
    return [f"{json.dumps(name, ensure_ascii=False)}:{write(item)}" for name, item in value.items()]
