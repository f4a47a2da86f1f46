"""What a request can say in several spellings, and who then wins.

An engine reads each spelling by itself and lets one beat the other: vLLM lets `enable_thinking` beat
`reasoning_effort`, and `max_completion_tokens` beat `max_tokens`. Merged field by field, a default would
so win over the caller's word in another spelling, and the caller would get round a forced one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.routes import BY_TEMPLATE, Path

TEMPLATE_KWARGS = "chat_template_kwargs"


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: hashing its tuples would cost each call
class Matter:
    """One thing with several spellings.

    A force that uses one of `spellings` takes all others out of what is below it, and `beside`, too: how
    much of the same thing. A default in `yielding` is not applied where something above it has spoken in
    one of the spellings given with it.
    """

    spellings: tuple[Path, ...]
    yielding: tuple[tuple[Path, tuple[Path, ...]], ...]
    beside: tuple[Path, ...] = ()


SWITCH: tuple[Path, ...] = ((TEMPLATE_KWARGS, "enable_thinking"), (TEMPLATE_KWARGS, "thinking"))
WORDS: tuple[Path, ...] = (
    ("reasoning_effort",),
    ("reasoning", "effort"),
    ("output_config", "effort"),
    ("thinking",),
)
WORD_FIELDS = frozenset(path[0] for path in WORDS)
# The same words among the template's own kwargs: templates and renderers read them there as they stand, and
# some let them beat the switch.
_INNER_WORDS: tuple[Path, ...] = ((TEMPLATE_KWARGS, "reasoning_effort"), (TEMPLATE_KWARGS, "thinking_effort"))
_ALL_WORDS = (*WORDS, *_INNER_WORDS)
_CHAT_CAPS: tuple[Path, ...] = (("max_completion_tokens",), ("max_tokens",))

# A default effort stays beside the caller's switch: how much to think is not whether to think.
THINKING = Matter(
    spellings=(*SWITCH, *_ALL_WORDS),
    yielding=(*((path, (*SWITCH, *WORDS)) for path in SWITCH), *((path, _ALL_WORDS) for path in _ALL_WORDS)),
    beside=(("thinking_token_budget",),),  # 0 ends thinking before it began
)
CHAT_OUTPUT_CAP = Matter(
    spellings=_CHAT_CAPS,
    yielding=tuple((path, _CHAT_CAPS) for path in _CHAT_CAPS),
)
N_PREDICT: Path = ("n_predict",)  # llama.cpp's own name for the output cap, which beats the route's there
MATTERS = {
    name: frozenset(
        matter
        for matter, holds in ((THINKING, route.has_template), (CHAT_OUTPUT_CAP, len(route.output_caps) > 1))
        if holds
    )
    for name, route in BY_TEMPLATE.items()
}
"""What can be said on a route in several spellings."""


def dotted(path: Path) -> str:
    """The name by which people are told of a path: `reasoning.effort`."""
    return ".".join(path)


def said(values: Mapping[str, Any], path: Path) -> bool:
    """Whether something other than null, or an object of nulls alone, stands at a path."""
    value = values.get(path[0])
    if value is None:
        return False
    if len(path) == 2:
        value = value.get(path[1]) if type(value) is dict else None
    if type(value) is dict:
        return any(item is not None for item in value.values())
    return value is not None


def speaks(values: Mapping[str, Any], paths: Iterable[Path]) -> bool:
    """Whether `values` says something at any of the paths."""
    for path in paths:  # noqa: SIM110 any() over a generator takes twice as long, on each request
        if said(values, path):
            return True
    return False


def silenced(yielding: Iterable[tuple[Path, tuple[Path, ...]]], body: Mapping[str, Any]) -> list[Path]:
    """Those of a layer's own spellings on which `body` has spoken in another spelling."""
    return [path for path, others in yielding if not said(body, path) and speaks(body, others)]


def without(values: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """A copy of `values` without what stands at `paths`; objects that are not touched are shared."""
    copy = dict(values)
    for path in paths:
        if len(path) == 1:
            copy.pop(path[0], None)
        elif type(copy.get(path[0])) is dict:
            copy[path[0]] = {name: value for name, value in copy[path[0]].items() if name != path[1]}
    return copy


def remove(body: dict[str, Any], paths: Iterable[Path]) -> list[str]:
    """Take `paths` out of `body`; answers those that were there. An object that this empties goes too."""
    removed = []
    for path in paths:
        if len(path) == 1:
            if path[0] not in body:
                continue
            del body[path[0]]
        else:
            held = body.get(path[0])
            if type(held) is not dict or path[1] not in held:
                continue
            del held[path[1]]
            if not held:
                del body[path[0]]
        removed.append(dotted(path))
    return removed
