"""What is refused by name: requests that an engine would keep, or for which it would ask others.

vLLM keeps responses in memory, for ever and for everybody who knows an id, where its store is switched on;
tools of type `mcp` make it call a server with headers of the caller's choice; an I/O plugin of `/pooling`
may read whatever address or path its data name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway.errors import InvalidRequest, quote
from gateway.routes import Route

_KEPT = "Responses are not stored here: send the whole conversation in 'input'."
_BY_ROUTE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "/v1/responses": {
            "previous_response_id": _KEPT,
            "conversation": _KEPT,
            "prompt": "Prompt templates are not stored here: send 'instructions' and 'input'.",
        },
        "/v1/messages": {"mcp_servers": "The gateway calls no MCP server for you: call it in your client."},
        "/pooling": {
            "data": "Data for a plugin of the engine's are not passed on: send 'input' or 'messages'."
        },
    }
)
_KEEPS = "/v1/responses"
_TOOLS = frozenset({_KEEPS, "/v1/messages"})


def check(body: Mapping[str, Any], route: Route) -> None:
    """Raise InvalidRequest, naming the field, for what is not done here. Null and `[]` ask for nothing."""
    for field, why in _BY_ROUTE.get(route.template, {}).items():
        if body.get(field) not in (None, []):
            raise InvalidRequest(why, param=field)
    if route.template in _TOOLS:
        _check_tools(body.get("tools"), "tools", levels=2)
    if route.template == _KEEPS:
        _check_background(body.get("background"))
        _check_references(body.get("input"))


def store_nothing(body: dict[str, Any], route: Route) -> bool:
    """Whether the route knows a store; then `body` says that it is not to be used."""
    if route.template != _KEEPS:
        return False
    body["store"] = False
    return True


def _check_background(background: object) -> None:
    if background is None or background is False:
        return
    if background is True:
        raise InvalidRequest(
            "Responses are not stored here, so none can run in the background: leave 'background' out.",
            param="background",
        )
    # The engine would read "yes" and 1 as true.
    raise InvalidRequest(f"'background' must be false; it is {quote(background)}.", param="background")


def _check_references(items: object) -> None:
    for number, item in enumerate(items if type(items) is list else ()):
        if type(item) is dict and item.get("type") == "item_reference":
            raise InvalidRequest(_KEPT, param=f"input[{number}].type")


def _check_tools(tools: object, where: str, levels: int) -> None:
    """Also those inside of a namespace of tools."""
    for number, tool in enumerate(tools if type(tools) is list and levels else ()):
        if type(tool) is not dict:
            continue
        kind = tool.get("type")
        if type(kind) is str and kind.lower().startswith("mcp"):
            raise InvalidRequest(
                "The gateway calls no MCP server for you: call it in your client and offer its functions.",
                param=f"{where}[{number}].type",
            )
        _check_tools(tool.get("tools"), f"{where}[{number}].tools", levels - 1)
