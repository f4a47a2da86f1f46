"""Errors in the shape of Anthropic's API, for the routes whose callers speak it."""

import orjson

from gateway.errors.tree import GatewayError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def body(error: GatewayError, request_id: str | None = None) -> bytes:
    """The JSON body `{"type": "error", "error": {"type", "message"}, "request_id"}`; without an id, no id."""
    said: dict[str, object] = {
        "type": "error",
        "error": {"type": kind(error.status), "message": error.message},
    }
    if request_id is not None:
        said["request_id"] = request_id
    return orjson.dumps(said)


def kind(status: int) -> str:
    """Anthropic's type for a status of ours."""
    return _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
