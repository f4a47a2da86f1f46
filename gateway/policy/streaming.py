"""Whether a call streams, and the usage that the gateway asks for on each stream for its own counting."""

from typing import Any

from gateway.errors import InvalidRequest, quote
from gateway.policy.merge import Written
from gateway.routes import Route

_OPTIONS = "stream_options"
_USAGE = "include_usage"
_USAGE_OF_FORMS = "stream_include_usage"


def ask_for_usage(body: dict[str, Any], route: Route, written: Written) -> tuple[bool, bool]:
    """Whether the caller streams, and whether the caller asked for usage; on a stream it is asked for anyway.

    Options without a stream are left for the engine to judge. Raises InvalidRequest for wrong types.
    """
    stream = body.get("stream")
    if stream is not None and type(stream) is not bool:
        raise InvalidRequest(f"'stream' must be true or false; it is {quote(stream)}.", param="stream")
    options = body.get(_OPTIONS)
    if options is not None and type(options) is not dict:
        raise InvalidRequest(f"'{_OPTIONS}' must be an object; it is {quote(options)}.", param=_OPTIONS)
    if not stream or not route.asks_usage:
        return bool(stream), False
    if route.body == "form":
        return True, _ask(body, _USAGE_OF_FORMS, _USAGE_OF_FORMS, written)
    if options is None:
        options = body[_OPTIONS] = {}
    return True, _ask(options, _USAGE, f"{_OPTIONS}.{_USAGE}", written)


def _ask(options: dict[str, Any], field: str, path: str, written: Written) -> bool:
    """Ask for usage; whether the caller has."""
    asked = options.get(field)
    if asked is not None and type(asked) is not bool:
        raise InvalidRequest(f"'{path}' must be true or false; it is {quote(asked)}.", param=path)
    if not asked:
        options[field] = True
        if written is not None:
            written[path] = "gateway"
    return bool(asked)
