"""What `defaults` and `force` may not hold, be it a model's, a variant's or a key's.

A fault here would meet every caller, so it stops the start, or the command that would store it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.settings.fault import Fault, Where
from gateway.settings.parameters import wrong_types

OF_ONE_CALL = frozenset(
    {
        "model",
        "messages",
        "prompt",
        "input",
        "stream",
        "stream_options",
        "request_id",
        "store",
        "background",
        "previous_response_id",
        "conversation",
    }
)
OF_THE_RENDERER = frozenset(
    {
        "chat_template",
        "tokenize",
        "add_generation_prompt",
        "continue_final_message",
        "messages",
        "conversation",
        "tools",
    }
)
TEMPLATE_KWARGS = "chat_template_kwargs"


def faults(values: Mapping[str, Any]) -> list[Fault]:
    """All that is wrong with one object of defaults or force."""
    not_json = list(_not_json(values, ()))
    found = [*_reserved(values), *_reserved_kwargs(values.get(TEMPLATE_KWARGS, {})), *not_json]
    broken = {fault.where[0] for fault in not_json}
    return [*found, *(fault for fault in wrong_types(values) if fault.where[0] not in broken)]


def _reserved(values: Mapping[str, Any]) -> Iterator[Fault]:
    for name in values:
        if name in OF_ONE_CALL:
            yield Fault((name,), "belongs to each call alone and has no default: take it out")


def _reserved_kwargs(kwargs: object) -> Iterator[Fault]:
    if not isinstance(kwargs, Mapping):
        yield Fault((TEMPLATE_KWARGS,), "must be a table, as in { enable_thinking = false }")
        return
    for name in kwargs:
        if name in OF_THE_RENDERER:
            yield Fault(
                (TEMPLATE_KWARGS, name), "is used by the engine's own renderer and cannot be set: take it out"
            )


def _not_json(value: object, path: Where) -> Iterator[Fault]:
    """Values that no JSON body can carry. The recursion is as deep as the operator nested."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _not_json(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_json(item, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield Fault(path, "must be a finite number: JSON has no other")
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield Fault(path, "must fit in 64 bits")
    elif not isinstance(value, str | int | float | None):
        yield Fault(path, "must be a value that JSON has: dates and times go in quotes")
