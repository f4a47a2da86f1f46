"""An engine's failure, said so that the caller knows whose it is and what to do.

Pure: a status and a body go in, one of our errors comes out. What the caller can mend keeps the
engine's own words; what only the operator can mend keeps them for the log.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from gateway.errors import (
    ContextLengthExceeded,
    EngineError,
    GatewayError,
    InvalidRequest,
    QueueFull,
    RequestTooLarge,
)

QUEUE_RETRY_SECONDS = 5
LONGEST_RETRY_SECONDS = 120
LONGEST_CAUSE = 200
ABOUT_THE_OPERATOR = (401, 403, 404)  # what these say is about keys and names, never about a prompt

_TOO_LONG = (
    "maximum context length",
    "max_tokens must be at least 1",
    "maximum model length",
    "context size",
)
_PROMPT_PARAMS = ("input_tokens", "input_text")


def refusal(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> GatewayError:
    """The error for an engine's answer of status 300 or more."""
    error = _error(body)
    message, param = _text(error, "message"), _text(error, "param") or None
    cause = f"engine answered {status}{described(error)}"
    if status in ABOUT_THE_OPERATOR:
        cause += f": {message[:LONGEST_CAUSE]}"
    if status in (429, 503):
        return QueueFull(
            "The engine has as many requests as it takes. Try again shortly.",
            retry_after=_retry_after(headers),
            cause=cause,
        )
    if status in (400, 413, 422, 501) and message:
        return _callers_fault(status, message, param, cause)
    return EngineError("The engine could not answer this request; the operator's log says why.", cause=cause)


def described(error: Mapping[str, Any]) -> str:
    """An engine's error for the log: never its message, which may quote the prompt."""
    said = {name: error[name] for name in ("type", "code", "param") if error.get(name) is not None}
    return f" {str(said)[:LONGEST_CAUSE]}" if said else ""


def not_json(status: int, content_type: bytes) -> EngineError:
    """The error for a good status whose content is not what this route answers."""
    return EngineError(
        "The engine answered with something that is no completion; the operator's log says what.",
        cause=f"engine answered {status} with content type {content_type.decode(errors='replace')!r}",
    )


def _callers_fault(status: int, message: str, param: str | None, cause: str) -> GatewayError:
    if param in _PROMPT_PARAMS or any(words in message for words in _TOO_LONG):
        return ContextLengthExceeded(message, param=param, cause=cause)
    kind = RequestTooLarge if status == 413 else InvalidRequest
    return kind(message, param=param, cause=cause)


def _error(body: bytes) -> dict[str, Any]:
    """The error object in an engine's answer; just a message for engines that send a text."""
    try:
        said: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = said.get("error", said) if isinstance(said, dict) else said
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _text(error: dict[str, Any], name: str) -> str:
    value = error.get(name)
    return value if isinstance(value, str) else ""


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name.lower() == b"retry-after" and value.isdigit():
            return min(max(int(value), 1), LONGEST_RETRY_SECONDS)
    return QUEUE_RETRY_SECONDS
