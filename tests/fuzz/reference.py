"""What the design says of a body, written down a second time and without regard to speed."""

import json
from collections.abc import Iterator
from typing import Any

from gateway.routes import BY_TEMPLATE

MAX_DEPTH = 128
DROPPED = {
    "priority", "cache_salt", "kv_transfer_params", "request_id", "vllm_xargs", "mm_processor_kwargs",
    "prompt_embeds", "chat_template", "ec_transfer_params", "session_id", "media_io_kwargs",
}  # fmt: skip
DROPPED_KWARGS = {"chat_template", "tokenize"}
KWARGS = "chat_template_kwargs"
# What the gateway itself may write, on whichever route.
OURS = {"model", "stream_options", KWARGS, "cache_salt", "store"}


def parse(text: bytes) -> dict[str, Any] | None:
    """The object in a body; None if it is not one that the gateway takes."""
    try:
        body = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not all(map(_sound, _values(body))):
        return None
    return body


def hides(text: bytes) -> bool:
    """Whether something that is not taken stands where a later value of the same name hides it."""
    whole = json.loads(text, object_pairs_hook=lambda pairs: [list(pair) for pair in pairs])
    return not all(_sound((value, 0)) for value, _ in _values(whole))


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _values(body: Any, depth: int = 1) -> Iterator[tuple[Any, int]]:
    yield body, depth
    items = [*body, *body.values()] if isinstance(body, dict) else body if isinstance(body, list) else ()
    for item in items:
        yield from _values(item, depth + 1)


def _sound(found: tuple[Any, int]) -> bool:
    value, depth = found
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    if isinstance(value, float):
        return abs(value) != float("inf")
    return not isinstance(value, (dict, list)) or depth <= MAX_DEPTH


def differences(route: str, caller: dict[str, Any], engine: dict[str, Any]) -> list[str]:
    """The fields in which an engine got something else than the caller said and the gateway may write."""
    wrong = [f"+{name}" for name in engine if name not in caller and name not in OURS]
    wrong += [f"{name} was to be dropped" for name in DROPPED & engine.keys() - OURS]
    for name, said in caller.items():
        if name in DROPPED or name in OURS:
            continue
        if name not in engine or text(engine[name]) != text(said):
            wrong.append(f"{name}: {text(said)[:200]} became {text(engine.get(name))[:200]}")
    return wrong + _kwargs(caller.get(KWARGS), engine.get(KWARGS)) + _options(route, caller, engine)


def _kwargs(said: Any, got: Any) -> list[str]:
    """Inside, all is the caller's but what is dropped and one switch."""
    said, got = said or {}, got or {}
    kept = {name: value for name, value in said.items() if name not in DROPPED_KWARGS}
    more = {name: value for name, value in got.items() if name not in kept and name != "enable_thinking"}
    less = [name for name, value in kept.items() if value is not None and text(got.get(name)) != text(value)]
    return [f"{KWARGS}: {text(said)} became {text(got)}"] if more or less else []


def _options(route: str, caller: dict[str, Any], engine: dict[str, Any]) -> list[str]:
    """Usage is asked for on streams of routes where it comes only so, and nothing else changes."""
    said, got = caller.get("stream_options"), engine.get("stream_options")
    if caller.get("stream") and BY_TEMPLATE[route].asks_usage:
        said = {**(said or {}), "include_usage": True}
    return [] if text(said) == text(got) else [f"stream_options: {text(said)} became {text(got)}"]


def text(value: Any) -> str:
    """JSON in which 1 and 1.0, 0.0 and -0.0 and the order of names all differ."""
    return json.dumps(value)
