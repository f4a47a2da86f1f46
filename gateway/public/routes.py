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
# Routes of the OpenAI and Anthropic APIs that clients may well try.
NOT_YET = (
    "/v1/responses",
    "/v1/conversations",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/score",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/speech",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/images/variations",
    "/v1/files",
    "/v1/uploads",
    "/v1/batches",
    "/v1/moderations",
    "/v1/assistants",
    "/v1/threads",
    "/v1/vector_stores",
    "/v1/fine_tuning/jobs",
    "/v1/realtime",
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
            "The path begins with /v1 twice: let the base URL end in /v1 once; "
            "if your client appends /v1 by itself, leave it out there."
        )
    awaited = _awaited(path)
    if awaited is not None:
        return NotFound(
            f"This gateway does not serve {awaited} yet; "
            "it serves /v1/chat/completions, /v1/completions and /v1/models."
        )
    if f"/v1{path}" in _EXACT or _by_prefix(f"/v1{path}"):
        return NotFound(f"The path lacks /v1: set your client's base URL to end in /v1, as in …/v1{path}.")
    return NotFound(f"There is no route {quote(path)}. The base URL of an OpenAI client ends in /v1.")


def _awaited(path: str) -> str | None:
    """The known route that is meant, also by a path under it or without /v1."""
    whole = path if path.startswith("/v1/") else f"/v1{path}"
    return next((known for known in NOT_YET if whole == known or whole.startswith(known + "/")), None)
