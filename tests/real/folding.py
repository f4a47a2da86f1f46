"""Two answers to one body, made comparable: ids and times masked, the pieces of a stream put together.

An engine puts several tokens in one event when its reader is slow. What a stream says,
and in which order it says it,
does not depend on that.
"""

import json
import re
from typing import Any

_IDS = re.compile(rb'"(id|item_id|call_id|request_id|response_id)":\s?"[^"]*"')
_TIMES = re.compile(rb'"(created|created_at|completed_at)":\s?[\d.]+')
_GROWING = {"content", "reasoning", "text", "delta", "arguments", "partial_json", "thinking"}
_PLACES = ("output_index", "content_index", "index", "item_id")


def masked(answer: bytes) -> bytes:
    """The answer without what differs between any two."""
    return _TIMES.sub(rb'"\1":0', _IDS.sub(rb'"\1":"x"', answer))


def events(stream: bytes) -> list[tuple[str, Any]]:
    """The events of a stream: names, and data as JSON or, as of `[DONE]`, text."""
    found = []
    for block in masked(stream).decode().split("\n\n")[:-1]:
        lines = block.split("\n")
        name = "".join(line[7:] for line in lines if line.startswith("event: "))
        data = "".join(line[6:] for line in lines if line.startswith("data: "))
        found.append((name, _without_count(json.loads(data)) if data.startswith("{") else data))
    return found


def _without_count(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "sequence_number"}


def folded(stream: bytes) -> dict[str, Any]:
    """What a stream says at each place: its events of one kind merged, growing texts joined."""
    places: dict[str, Any] = {}
    for name, event in events(stream):
        where = place(name, event)
        places[where] = _merged("", places[where], event) if where in places else event
    return places


def place(name: str, event: Any) -> str:
    """Where an event belongs: to a choice, to an item, or to nothing but its kind."""
    if not isinstance(event, dict):
        return f"{name} {event}"
    choices = event.get("choices")
    if choices is not None:
        return f"choice {[choice['index'] for choice in choices]}"
    return " ".join([name, *(f"{key}={event[key]}" for key in _PLACES if key in event)])


def _merged(name: str, first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return first | {key: _merged(key, first.get(key), value) for key, value in second.items()}
    if isinstance(first, list) and isinstance(second, list):
        if name == "choices":
            return [_merged("", *pair) for pair in zip(first, second, strict=True)]
        return first + second
    if isinstance(first, str) and isinstance(second, str) and name in _GROWING:
        return first + second
    return first if second is None else second
