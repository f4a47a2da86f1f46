"""One layer of defaults or force: its values, who wrote them, and the matters on which it speaks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from gateway.policy.spellings import (
    CHAT_OUTPUT_CAP,
    MATTERS,
    TEMPLATE_KWARGS,
    THINKING,
    WORD_FIELDS,
    Matter,
    said,
    speaks,
)
from gateway.routes import Path, Route

_CONTESTED = frozenset(path[0] for matter in (THINKING, CHAT_OUTPUT_CAP) for path in matter.spellings)


@dataclass(frozen=True, slots=True)
class Layer:
    """`values` belong to all requests: read them, never change them."""

    values: Mapping[str, Any]
    source: str
    matters: frozenset[Matter]
    spoken: tuple[tuple[Path, tuple[Path, ...]], ...]

    @classmethod
    def of(
        cls, values: Mapping[str, Any], source: str, matters: Iterable[Matter] = (THINKING, CHAT_OUTPUT_CAP)
    ) -> Self:
        """A layer with what it says in several spellings found once, not on each request."""
        if _CONTESTED.isdisjoint(values):
            return cls(values, source, frozenset(), ())
        own = frozenset(matter for matter in matters if speaks(values, matter.spellings))
        spoken = (pair for matter in own for pair in matter.yielding if said(values, pair[0]))
        return cls(values, source, own, tuple(spoken))

    def on(self, route: Route) -> Self:
        """The part of this layer that a route takes."""
        matters = MATTERS[route.template]
        if route.has_template and route.generates and self.matters <= matters:
            return self
        kept = {name: value for name, value in self.values.items() if _takes(route, name, value)}
        return type(self).of(kept, self.source, matters)


def _takes(route: Route, name: str, value: object) -> bool:
    """What changes a template goes where one is rendered, all else where tokens are made.

    A form has fields of text alone: an object or a list there is a default of the model's other routes.
    """
    if name == TEMPLATE_KWARGS:
        return route.has_template
    if route.body == "form":
        return not isinstance(value, dict | list)
    return route.generates or (route.has_template and name in WORD_FIELDS)
