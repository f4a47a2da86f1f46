"""Which route a path means, and what a caller is told who has missed one."""

from gateway.errors import GatewayError, MethodNotAllowed, NotFound, quote
from gateway.errors.tree import LONGEST_QUOTE
from gateway.routes import ROUTES, Route

# Routes of the OpenAI and Anthropic APIs that clients may well try, and that are not served.
UNSERVED = (
    "/v1/conversations",
    "/v1/messages/batches",
    "/v1/complete",
    "/v1/audio/speech",
    "/v1/audio/voices",
    "/v1/images",
    "/v1/videos",
    "/v1/files",
    "/v1/uploads",
    "/v1/batches",
    "/v1/moderations",
    "/v1/assistants",
    "/v1/threads",
    "/v1/vector_stores",
    "/v1/containers",
    "/v1/evals",
    "/v1/fine_tuning",
    "/v1/realtime",
)
_EXACT = {route.template: route for route in ROUTES if "{" not in route.template}
_PREFIXED = tuple((route.template.partition("{")[0], route) for route in ROUTES if "{" in route.template)
# What callers may have meant by a path that ends so, the longest first.
_MEANT = sorted((name for name in _EXACT if name != "/healthz"), key=len, reverse=True)
_SERVED = ", ".join(name for name in _EXACT if name != "/healthz")


def find(method: str, path: str) -> tuple[Route, str]:
    """The route of a path and the path without its trailing slash.

    Raises NotFound, or MethodNotAllowed for a known path.
    """
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    route = _EXACT.get(path) or _by_prefix(path)
    if route is None:
        raise _not_found(path)
    if method not in route.methods:
        raise MethodNotAllowed(method, path, route.methods)
    return route, path


def speaks_anthropic(path: str) -> bool:
    """Whether who calls this path, be it a route or not, reads errors in Anthropic's shape."""
    return path.startswith("/v1/messages") and path[12:13] in ("", "/")


def _by_prefix(path: str) -> Route | None:
    return next((route for prefix, route in _PREFIXED if path.startswith(prefix) and path != prefix), None)


def _not_found(path: str) -> GatewayError:
    if path.startswith("/v1/v1/"):
        return NotFound(
            "The path begins with /v1 twice: let the base URL end in /v1 once; "
            "if your client appends /v1 by itself, leave it out there."
        )
    if path.startswith("/v1/responses/"):
        return NotFound("Responses are not stored by this gateway: there is only POST /v1/responses.")
    unserved = _unserved(path)
    if unserved is not None:
        return NotFound(f"This gateway does not serve {unserved}; it serves {_SERVED}.")
    if f"/v1{path}" in _EXACT or _by_prefix(f"/v1{path}"):
        right = f"…/v1{path[:LONGEST_QUOTE]}"
        return NotFound(f"The path lacks /v1: set your client's base URL to end in /v1, as in {right}.")
    meant = _meant(path)
    if meant is not None:
        return NotFound(f"There is no route {quote(path)}. Did you mean {meant}?")
    return NotFound(f"There is no route {quote(path)}. The base URL of an OpenAI client ends in /v1.")


def _unserved(path: str) -> str | None:
    """The known route that is meant, also by a path under it or without /v1."""
    whole = path if path.startswith("/v1/") else f"/v1{path}"
    return next((known for known in UNSERVED if whole == known or whole.startswith(known + "/")), None)


def _meant(path: str) -> str | None:
    """The route whose whole path, or all of it behind /v1, another path ends with."""
    return next((name for name in _MEANT if path.endswith((name, name.removeprefix("/v1")))), None)
