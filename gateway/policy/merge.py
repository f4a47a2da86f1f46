"""How objects are merged: below what is there (defaults), or above it (force).

Both change `body` in place and never share an object with the layer: what one request does to its
body cannot reach the next. The recursion is as deep as the layer, and bodies are at most 128 deep.
`written` takes the source of each leaf that a layer wrote, by its dotted path, where somebody asks.
"""

from collections.abc import Mapping
from typing import Any

Written = dict[str, str] | None


def fill(
    body: dict[str, Any],
    layer: Mapping[str, Any],
    source: str = "",
    written: Written = None,
    prefix: str = "",
) -> None:
    """Set what `body` does not say. A null says nothing, at any depth, in either of the two."""
    for name, value in layer.items():
        held = body.get(name)
        if type(value) is dict:
            if held is None:
                held = {}
                fill(held, value, source, written, f"{prefix}{name}.")
                if held:
                    body[name] = held
            elif type(held) is dict:
                fill(held, value, source, written, f"{prefix}{name}.")
        elif held is None and value is not None:
            body[name] = _copy(value)
            if written is not None:
                written[prefix + name] = source


def override(
    body: dict[str, Any],
    layer: Mapping[str, Any],
    source: str = "",
    written: Written = None,
    prefix: str = "",
) -> None:
    """Set all that `layer` says, whatever `body` says. A null in `layer` is written as it is."""
    for name, value in layer.items():
        if type(value) is dict:
            held = body.get(name)
            if type(held) is not dict:
                if not value:
                    continue
                held = body[name] = {}
            override(held, value, source, written, f"{prefix}{name}.")
        else:
            body[name] = _copy(value)
            if written is not None:
                written[prefix + name] = source


def leaves(body: Mapping[str, Any]) -> list[str]:
    """The dotted paths of all values that are no objects, arrays among them, and of empty objects."""
    found: list[str] = []
    inside = [("", body)]
    while inside:
        prefix, values = inside.pop()
        for name, value in values.items():
            if type(value) is dict and value:
                inside.append((f"{prefix}{name}.", value))
            else:
                found.append(prefix + name)
    return found


def _copy(value: Any) -> Any:
    if type(value) is list:
        return [_copy(item) for item in value]
    if type(value) is dict:
        return {name: _copy(item) for name, item in value.items()}
    return value
