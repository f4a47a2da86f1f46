"""Whether the model thinks: makes the engine act on a word that it would not hear on this route.

vLLM acts on `reasoning_effort` in chat and on `reasoning.effort` in responses by setting `enable_thinking`
itself. In messages it acts on `output_config.effort` and on `thinking.type: "disabled"`, but takes
`"enabled"` for a token budget alone. Whose word counts was settled when the layers were merged.
"""

from collections.abc import Mapping
from typing import Any

from gateway.policy.merge import Written
from gateway.policy.spellings import SWITCH, TEMPLATE_KWARGS, WORD_FIELDS, WORDS, said, speaks
from gateway.routes import Path, Route

_ENABLE = "enable_thinking"
_THINKING_TYPES = {"enabled": True, "adaptive": True, "disabled": False}


def spell_out(body: dict[str, Any], route: Route, written: Written) -> None:
    """Write `enable_thinking` where a word on thinking stands in `body` that the engine would not act on."""
    if not route.has_template or WORD_FIELDS.isdisjoint(body) or speaks(body, SWITCH):
        return
    wanted = _unheard(body, route)
    if wanted is None:
        return
    kwargs = body.get(TEMPLATE_KWARGS)
    if kwargs is None:
        kwargs = body[TEMPLATE_KWARGS] = {}
    kwargs[_ENABLE] = wanted
    if written is not None:
        written[f"{TEMPLATE_KWARGS}.{_ENABLE}"] = "gateway"


def _unheard(body: Mapping[str, Any], route: Route) -> bool | None:
    """What the words say together; None if they say nothing or the engine acts on one of them."""
    first: bool | None = None
    for path in WORDS:
        if not said(body, path):
            continue
        wanted = _wanted(body, path)
        if path in route.hears and not (path == ("thinking",) and wanted):
            return None
        if first is None:
            first = wanted
    return first


def _wanted(body: Mapping[str, Any], path: Path) -> bool | None:
    """What one word asks for; None for a word that makes no sense, which the engine may judge."""
    word = body[path[0]]
    if path == ("thinking",):
        if type(word) is dict:
            word = word.get("type")
            return _THINKING_TYPES.get(word) if type(word) is str else None
        return word if type(word) is bool else None
    effort = word[path[1]] if len(path) == 2 else word
    return effort != "none" if type(effort) is str else None
