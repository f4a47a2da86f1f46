"""How an error leaves: whole, in the shape of its route, and so that it is read.

A refusal that comes before the body was read closes the connection, but not at once: a reset would
destroy the answer on its way. The rest of the body is read and thrown away for a moment. Strangers are read
1 MiB of it. Who has a key may go on for as long as the moment lasts: client libraries that write all before
they read see the answer only then, and reading costs less than the body that this caller may send anyway.
"""

import asyncio
import contextlib
import math
from collections.abc import Iterable

from starlette.types import Receive, Send

from gateway.errors import GatewayError, InternalError, anthropic
from gateway.public import routes
from gateway.usage import Record

LINGER_BYTES = 1_048_576
LINGER_SECONDS = 1.0


async def respond(send: Send, error: GatewayError, body: bytes, *, close: bool = False) -> None:
    """Send the error with this body; with `close` the connection ends after it."""
    await _start(send, error, body, close=close)
    await send({"type": "http.response.body", "body": body})


async def refuse(receive: Receive, send: Send, error: GatewayError, body: bytes, *, known: bool) -> None:
    """Send the error although the caller is still sending its request; `known`: it has a key."""
    await _start(send, error, body, close=True)
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            await _throw_away(receive, math.inf if known else LINGER_BYTES)
    await send({"type": "http.response.body", "body": b""})


def body_of(error: GatewayError, path: str, record: Record) -> bytes:
    """The error's body in the shape that callers of this path read, whether or not there is such a route."""
    if routes.speaks_anthropic(path):
        return anthropic.body(error, record.request_id)
    return error.body()


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request's head announces a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in headers
    )


def internal_error(record: Record) -> InternalError:
    """What a caller is told of a fault of ours: the id by which the operator finds the rest in the log."""
    return InternalError(
        f"The gateway failed. Tell the operator the request id {record.request_id}; the log says more."
    )


async def _start(send: Send, error: GatewayError, body: bytes, *, close: bool) -> None:
    headers = [*error.headers(), (b"content-length", b"%d" % len(body))]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})


async def _throw_away(receive: Receive, most_bytes: float) -> None:
    left = most_bytes
    while left > 0:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return
        left -= len(message.get("body", b""))
    await asyncio.sleep(LINGER_SECONDS)  # reading no more: a caller who still sends may look up
