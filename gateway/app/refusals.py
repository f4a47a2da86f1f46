"""What a connection says to bytes that never become a request: whole responses, written without ASGI."""

import structlog

from gateway.errors import GatewayError, HeadersTooLarge, InvalidRequest
from gateway.usage import Record

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}
_log = structlog.get_logger("gateway.connection")


def response(error: GatewayError, client: tuple[str, int] | None) -> bytes:
    """The whole response of a refusal; noted in the log under the request id that it carries."""
    request_id = Record().request_id
    address = client[0] if client else None
    _log.info("refused", request_id=request_id, reason=error.code, cause=error.cause, address=address)
    body = error.body()
    head = b"HTTP/1.1 %d %b\r\n" % (error.status, _REASONS[error.status])
    head += b"".join(b"%b: %b\r\n" % header for header in error.headers())
    head += b"x-request-id: %b\r\ncontent-length: %d\r\n" % (request_id.encode(), len(body))
    return head + b"connection: close\r\n\r\n" + body


def not_http(cause: object) -> InvalidRequest:
    """For bytes that the parser does not take."""
    return InvalidRequest("This is no valid HTTP request; this port speaks HTTP/1.1.", cause=str(cause))


def head_too_large(max_bytes: int, max_headers: int) -> HeadersTooLarge:
    """For a head, or trailers, over a bound."""
    return HeadersTooLarge(
        f"The request's head is over {max_bytes} bytes or {max_headers} headers.", should_retry=False
    )


def too_many(max_pipelined: int) -> InvalidRequest:
    """For a pipeline that is too long."""
    return InvalidRequest(f"More than {max_pipelined} requests wait on this connection: open another one.")
