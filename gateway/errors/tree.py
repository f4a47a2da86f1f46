"""Every error that a caller can see: one small tree, each with its status, type and code, and one renderer.

The shape is OpenAI's `{"error": {"message", "type", "param", "code"}}`. What a route does about an
error is decided where it is raised; nothing here knows routes, engines or keys.

    GatewayError
    ├── InvalidApiKey 401            ├── RateLimitExceeded 429     ├── EngineError 502
    ├── ModelNotFound 404            ├── InsufficientQuota 429     ├── EngineTimeout 504
    ├── NotFound 404                 ├── QueueFull 503             ├── ShuttingDown 503
    ├── MethodNotAllowed 405         ├── QueueTimeout 503          ├── KeyStoreUnavailable 503
    ├── InvalidJson 400              ├── EngineLoading 503         ├── InternalError 500
    ├── InvalidRequest 400           └── EngineUnavailable 503     ├── StorageFull 507
    ├── ContextLengthExceeded 400                                  ├── UsageStoreUnavailable 503
    │                                                              └── ClientClosed 499 (for logs)
    ├── RequestTooLarge 413, UnsupportedMediaType 415, HeadersTooLarge 431
"""

import reprlib
from collections.abc import Iterable

import orjson

Headers = list[tuple[bytes, bytes]]

LONGEST_QUOTE = 100


def quote(value: object) -> str:
    """A caller's value for a message: as JSON-like text, cut to 100 characters."""
    text = value if isinstance(value, str) else _short(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")


def _short(value: object) -> str:
    """As `repr`, but no longer to make than to read: a caller's list may have a million items."""
    shortener = reprlib.Repr()
    # It cuts in the middle: three times as much leaves a head that is longer than what is quoted.
    shortener.maxother = shortener.maxstring = shortener.maxlong = 3 * LONGEST_QUOTE
    return shortener.repr(value)


class GatewayError(Exception):
    """What a caller is told. `cause` goes to the log alone, joined by the request id.

    `retry_after` is in whole seconds; `should_retry` False tells the SDKs not to try again. Where
    `costs_a_request`, a call that failed so before its answer counts against the key's rpm.
    """

    status = 500
    type = "server_error"
    code = "internal_error"
    costs_a_request = False

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
        should_retry: bool | None = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after
        self.should_retry = should_retry
        self.extra_headers = tuple(headers)
        self.cause = cause

    def body(self) -> bytes:
        """The JSON body in OpenAI's shape; `code` is always a string."""
        return orjson.dumps(self.envelope())

    def envelope(self) -> dict[str, dict[str, str | None]]:
        """The error object, as a stream's `data:` line carries it too."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def headers(self) -> Headers:
        """The headers that belong to this error, `Retry-After` and `x-should-retry` among them."""
        out: Headers = [(b"content-type", b"application/json"), *self.extra_headers]
        if self.retry_after is not None:
            out.append((b"retry-after", b"%d" % self.retry_after))
        if self.should_retry is not None:
            out.append((b"x-should-retry", b"true" if self.should_retry else b"false"))
        return out


class CallerError(GatewayError):
    """The caller can mend it."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_request"
    costs_a_request = True


class InvalidApiKey(CallerError):
    """No key, unknown, expired or revoked: one message for all, `cause` says which.

    Another `message` is only for a caller who has proved to hold the key.
    """

    status = 401
    code = "invalid_api_key"
    costs_a_request = False

    def __init__(self, cause: str, *, message: str | None = None) -> None:
        super().__init__(
            message
            or "Incorrect API key provided. Ask the operator of this gateway for a key, and send it as "
            "'Authorization: Bearer sk-gw-…' or 'x-api-key'.",
            headers=[(b"www-authenticate", b"Bearer")],
            cause=cause,
        )


class ModelNotFound(CallerError):
    """Unknown model, or one that this key may not use."""

    status = 404
    code = "model_not_found"

    def __init__(self, name: object) -> None:
        super().__init__(
            f"The model {quote(name)} does not exist or your key has no access to it. "
            "GET /v1/models lists the models that you can use.",
            param="model",
        )


class NotFound(CallerError):
    """No such route."""

    status = 404
    code = "not_found"


class MethodNotAllowed(CallerError):
    """A known path with another method; `Allow` names the right ones."""

    status = 405
    code = "method_not_allowed"
    costs_a_request = False

    def __init__(self, method: str, path: str, allowed: Iterable[str]) -> None:
        allow = ", ".join(allowed)
        super().__init__(
            f"{quote(method)} is not possible on {quote(path)}: use {allow}.",
            headers=[(b"allow", allow.encode())],
        )


class InvalidJson(CallerError):
    """The body is not one JSON object in UTF-8."""

    code = "invalid_json"


class InvalidRequest(CallerError):
    """A field of a wrong type or value; `param` names it."""


class ContextLengthExceeded(CallerError):
    """The prompt is too long for the model; the engine's own words."""

    code = "context_length_exceeded"


class RequestTooLarge(CallerError):
    """The body is over its limit."""

    status = 413
    code = "request_too_large"


class UnsupportedMediaType(CallerError):
    """A content type or encoding that this route does not take."""

    status = 415
    code = "unsupported_media_type"


class HeadersTooLarge(CallerError):
    """The request's head is over 64 KiB or 100 headers."""

    status = 431
    code = "headers_too_large"
    costs_a_request = False


class RateLimitExceeded(GatewayError):
    """rpm, tpm or max_parallel; the message says which, the limit and the wait."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class InsufficientQuota(GatewayError):
    """A budget is spent; the message says when it renews."""

    status = 429
    type = "insufficient_quota"
    code = "insufficient_quota"


class QueueFull(GatewayError):
    """Too much waits already, here or in the engine."""

    status = 503
    code = "queue_full"


class QueueTimeout(GatewayError):
    """Waited longer than the queue allows."""

    status = 503
    code = "queue_timeout"


class EngineLoading(GatewayError):
    """The engine is starting: its model is not loaded yet."""

    status = 503
    code = "engine_loading"


class EngineUnavailable(GatewayError):
    """The engine has not been reachable for longer than a start takes."""

    status = 503
    code = "engine_unavailable"


class EngineError(GatewayError):
    """The engine failed, or answered what only the operator can mend."""

    status = 502
    code = "engine_error"


class EngineTimeout(GatewayError):
    """The engine was silent for too long."""

    status = 504
    code = "engine_timeout"


class ShuttingDown(GatewayError):
    """The gateway was told to stop."""

    status = 503
    code = "shutting_down"


class KeyStoreUnavailable(GatewayError):
    """The key database cannot be read and this key is not known from before."""

    status = 503
    code = "key_store_unavailable"


class UsageStoreUnavailable(GatewayError):
    """The usage database cannot be read or written; operators alone are told, calls go on."""

    status = 503
    code = "usage_store_unavailable"


class InternalError(GatewayError):
    """A fault of the gateway's own; details are in the log alone."""


class StorageFull(GatewayError):
    """No room for a file."""

    status = 507
    code = "storage_full"


class ClientClosed(GatewayError):
    """The caller left. Nobody reads this: it is for logs and metrics."""

    status = 499
    code = "client_closed"
    costs_a_request = True
