"""The requests that were recorded: a route and a body each, as the gateway sends them to the engine."""

from typing import Any, NamedTuple

MODEL = "smollm2-135m"
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
# Both are at rest in greedy decoding: an engine answers them alike each time.
STILL = {"temperature": 0, "seed": 1}
ASKED = {"stream": True, "stream_options": {"include_usage": True}}

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
TOO_LONG = "word " * 9_000

SCHEMA = {
    "type": "object",
    "properties": {"capital": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["capital"],
    "additionalProperties": False,
}


class Call(NamedTuple):
    """One request. `body` is None for GET; `cut` records only what came before the engine was killed."""

    path: str
    body: dict[str, Any] | None = None
    raw: bytes | None = None
    cut: bool = False


def chat(**more: Any) -> dict[str, Any]:
    """A chat body of 24 tokens at most."""
    return {"model": MODEL, "messages": QUESTION, "max_tokens": 24, **STILL, **more}


CALLS: dict[str, Call] = {
    "health": Call("/health"),
    "models": Call("/v1/models"),
    "chat": Call(CHAT, chat()),
    "chat_of_two": Call(CHAT, chat(n=2)),
    "chat_stream": Call(CHAT, chat(**ASKED)),
    "chat_stream_without_usage": Call(CHAT, chat(stream=True)),
    "chat_stream_cut": Call(CHAT, chat(max_tokens=400, ignore_eos=True, **ASKED), cut=True),
    "completion": Call(COMPLETIONS, {"model": MODEL, "prompt": "One, two,", "max_tokens": 8, **STILL}),
    "completion_stream": Call(
        COMPLETIONS, {"model": MODEL, "prompt": "One, two,", "max_tokens": 8, **STILL, **ASKED}
    ),
    "schema": Call(
        CHAT,
        chat(response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}),
    ),
    "too_long": Call(CHAT, chat(messages=[{"role": "user", "content": TOO_LONG}])),
    "too_long_stream": Call(CHAT, chat(messages=[{"role": "user", "content": TOO_LONG}], **ASKED)),
    "wrong_type": Call(CHAT, chat(messages="hello")),
    "n_beyond_its_slots": Call(CHAT, chat(n=8)),
    "bad_json": Call(CHAT, raw=b'{"model": "smollm2-135m",'),
    "unknown_route": Call("/v1/score", {"model": MODEL, "queries": "a", "documents": ["b"]}),
    "embeddings": Call("/v1/embeddings", {"model": MODEL, "input": "hello"}),
    "messages": Call("/v1/messages", chat()),
    "messages_stream": Call("/v1/messages", chat(stream=True)),
    "responses": Call(
        "/v1/responses",
        {"model": MODEL, "input": "Say hello.", "max_output_tokens": 16, "temperature": 0, "store": False},
    ),
    "responses_stream": Call(
        "/v1/responses",
        {"model": MODEL, "input": "Say hello.", "max_output_tokens": 16, "temperature": 0, "store": False,
         "stream": True},
    ),
}  # fmt: skip
