"""An engine's failure, said so that the caller knows whose it is and what to do.

A status, headers and a body go in, one of our errors comes out. What the caller can mend keeps the
engine's own words; what only the operator can mend keeps them for the log.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
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
from gateway.relay.scrub import scrub

QUEUE_RETRY_SECONDS = 5
LONGEST_RETRY_SECONDS = 120
LONGEST_CAUSE = 200
ABOUT_THE_OPERATOR = (401, 403, 404, 405)  # what these say is about keys and names, never about a prompt

_TOO_LONG = (
    "context length",
    "context size",
    "context window",
    "max_tokens must be at least 1",  # the prompt leaves no room for one
    "maximum model length",
    "must have less than",
)
_PROMPT_PARAMS = ("input_tokens", "input_text")
_NO_SUCH_API = re.compile(r"(?:model does not support .* API|server does not support)\b")
_NO_SUCH_INPUT = re.compile(r"(?:image|audio|video) input is not supported")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_FEW = 10


def refusal(
    status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, route: str, model: str
) -> GatewayError:
    """The error for an engine's answer of status 300 or more to a call of `route`."""
    error = _error(body)
    message, param = _text(error, "message"), _text(error, "param").removeprefix("body.") or None
    cause = f"engine answered {status}{described(error)}"
    if status in ABOUT_THE_OPERATOR:
        cause += f": {message[:LONGEST_CAUSE]}"
    if status in (429, 503):
        return QueueFull(
            "The engine has as many requests as it takes. Try again shortly.",
            retry_after=_retry_after(headers),
            cause=cause,
        )
    if _is_unserved(status, message, param):
        return InvalidRequest(f"The model '{model}' does not serve {route}.", param="model", cause=cause)
    if status == 500 and _NO_SUCH_INPUT.match(message):  # llama.cpp, of what the caller sent
        return InvalidRequest(
            f"The model '{model}' takes no such input: {message.split(' - ')[0]}.", cause=cause
        )
    if status in (400, 413, 422, 501) and message:
        return _callers_fault(status, message, param, cause)
    return EngineError(
        "The engine could not answer this request; the operator's log says why.",
        should_retry=False if status in ABOUT_THE_OPERATOR else None,  # a second try meets the same engine
        cause=cause,
    )


def described(error: Mapping[str, Any]) -> str:
    """An engine's error for the log: never its message, which may quote the prompt."""
    said = {name: error[name] for name in ("type", "code", "param") if error.get(name) is not None}
    return f" {str(said)[:LONGEST_CAUSE]}" if said else ""


def unexpected(status: int, media_type: str) -> EngineError:
    """The error for a good status whose content is not what this route answers."""
    return EngineError(
        "The engine answered with something that this route does not answer; the operator's log says what.",
        cause=f"engine answered {status} with content type {media_type!r}",
    )


def _callers_fault(status: int, message: str, param: str | None, cause: str) -> GatewayError:
    told = scrub(message)
    if param in _PROMPT_PARAMS or any(words in message for words in _TOO_LONG):
        return ContextLengthExceeded(told, param=param, cause=cause)
    kind = RequestTooLarge if status == 413 else InvalidRequest
    return kind(told, param=param, cause=cause)


def _is_unserved(status: int, message: str, param: str | None) -> bool:
    """Whether the engine has no such route, and not just no such model."""
    if status == 501:
        return not message or _NO_SUCH_API.search(message) is not None
    return status in (404, 405) and param != "model" and "model" not in message.lower()


def _error(body: bytes) -> dict[str, Any]:
    """The error object in an engine's answer, be it OpenAI's, Anthropic's, FastAPI's or a mere text."""
    try:
        said: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = said.get("error") or said.get("detail") or said if isinstance(said, dict) else said
    if isinstance(error, list):
        error = "; ".join(_fault(item) for item in error[:_FEW])
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _fault(item: Any) -> str:
    """One entry of FastAPI's list of faults: where, and what; without the input that it repeats."""
    if not isinstance(item, dict):
        return "a value is not valid"
    where = item.get("loc")
    path = ".".join(map(str, where)) if isinstance(where, list) else "body"
    return f"{path}: {item.get('msg', 'is not valid')}"


def _text(error: dict[str, Any], name: str) -> str:
    value = error.get(name)
    return value if isinstance(value, str) else ""


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name.lower() == b"retry-after":
            seconds = _seconds(value.decode("latin-1"))
            return QUEUE_RETRY_SECONDS if seconds is None else min(max(seconds, 1), LONGEST_RETRY_SECONDS)
    return QUEUE_RETRY_SECONDS


def _seconds(retry_after: str) -> int | None:
    """A number, or a date (RFC 9110, section 10.2.3), as whole seconds from now; None for anything else."""
    if _NUMBER.fullmatch(retry_after):
        return ceil(min(float(retry_after), LONGEST_RETRY_SECONDS))
    try:
        until = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:  # of the three forms, the one without a zone is in UTC too
        until = until.replace(tzinfo=UTC)
    return ceil((until - datetime.now(UTC)).total_seconds())
