"""The allow-list of public routes, as data. What is not here is 404 and no engine hears of it."""

from dataclasses import dataclass
from typing import Literal

from gateway.errors import GatewayError, MethodNotAllowed, NotFound, quote


@dataclass(frozen=True, slots=True)
class Route:
    """One public route. `template` is its name in metrics; `kind` says who serves it."""

    template: str
    methods: tuple[str, ...]
    kind: Literal["live", "api", "open"]  # live: to an engine; api: FastAPI, with a key; open: without


ROUTES = (
    Route("/v1/chat/completions", ("POST",), "live"),
    Route("/v1/completions", ("POST",), "live"),
    Route("/v1/models", ("GET", "HEAD"), "api"),
    Route("/v1/models/{id}", ("GET", "HEAD"), "api"),
    Route("/healthz", ("GET", "HEAD"), "open"),
)
_EXACT = {route.template: route for route in ROUTES if "{" not in route.template}
_PREFIXED = tuple((route.template.partition("{")[0], route) for route in ROUTES if "{" in route.template)


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


def _by_prefix(path: str) -> Route | None:
    return next((route for prefix, route in _PREFIXED if path.startswith(prefix) and path != prefix), None)


def _not_found(path: str) -> GatewayError:
    if path.startswith("/v1/v1/"):
        return NotFound(
            "The path begins with /v1 twice: your client appends /v1 to a base URL that already ends in it. "
            "Set its base URL without /v1."
        )
    if f"/v1{path}" in _EXACT or _by_prefix(f"/v1{path}"):
        return NotFound(f"The path lacks /v1: set your client's base URL to end in /v1, as in …/v1{path}.")
    return NotFound(f"There is no route {quote(path)}. The base URL of an OpenAI client ends in /v1.")
