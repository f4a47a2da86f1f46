"""An engine's failure, said so that the caller knows whose it is and what to do.

Pure: a status and a body go in, one of our errors comes out. What the caller can mend keeps the
engine's own words; what only the operator can mend keeps them for the log.
"""

from collections.abc import Iterable
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
LONGEST_CAUSE = 500

_TOO_LONG = (
    "maximum context length",
    "max_tokens must be at least 1",
    "maximum model length",
    "context size",
)
_PROMPT_PARAMS = ("input_tokens", "input_text")


def refusal(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> GatewayError:
    """The error for an engine's answer of status 300 or more."""
    message, param = _words(body)
    cause = f"engine answered {status}: {message or body[:LONGEST_CAUSE].decode(errors='replace')}"
    if status in (429, 503):
        return QueueFull(
            "The engine has as many requests as it takes. Try again shortly.",
            retry_after=_retry_after(headers),
            cause=cause,
        )
    if status in (400, 413, 422, 501) and message:
        return _callers_fault(status, message, param, cause)
    return EngineError("The engine could not answer this request; the operator's log says why.", cause=cause)


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


def _words(body: bytes) -> tuple[str, str | None]:
    """The message and the parameter that an engine's error body names."""
    try:
        said: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", None
    error = said.get("error", said) if isinstance(said, dict) else said
    if isinstance(error, str):
        return error, None
    if not isinstance(error, dict):
        return "", None
    message, param = error.get("message"), error.get("param")
    return message if isinstance(message, str) else "", param if isinstance(param, str) else None


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name.lower() == b"retry-after" and value.isdigit():
            return min(max(int(value), 1), LONGEST_RETRY_SECONDS)
    return QUEUE_RETRY_SECONDS
