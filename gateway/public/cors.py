"""Which web pages may call: CORS as far as a public API with keys needs it. Without origins it is off.

Every answer carries the headers, errors too: without them a page sees a network error in their place.
"""

from collections.abc import Iterable, Sequence

from starlette.types import Message, Scope, Send

from gateway.errors import Headers
from gateway.routes import Route

MAX_AGE = b"600"  # seconds that a browser may remember a preflight
EXPOSED = b", ".join(
    (
        b"x-request-id", b"retry-after", b"x-should-retry", b"openai-processing-ms", b"metadata",
        *(b"x-ratelimit-%b-%b" % (what, of)
          for what in (b"limit", b"remaining", b"reset") for of in (b"requests", b"tokens")),
    )
)  # fmt: skip


def marking(scope: Scope, send: Send, origins: Sequence[str]) -> Send:
    """`send` with what lets the calling page read the answer, if its origin is one of these."""
    headers: Headers = [(b"vary", b"origin")]
    origin = _value(scope["headers"], b"origin")
    if origin and ("*" in origins or origin.decode("latin-1") in origins):
        headers += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED)]

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]
        await send(message)

    return marked


def preflight_method(scope: Scope) -> str:
    """The method that a page asks leave for; empty if this is no preflight."""
    if scope["method"] != "OPTIONS":
        return ""
    return _value(scope["headers"], b"access-control-request-method").decode("latin-1")


async def grant(scope: Scope, send: Send, route: Route) -> None:
    """Answer a preflight: what may be sent. Whose page may send it, `marking` says."""
    headers: Headers = [
        (b"access-control-allow-methods", ", ".join(route.methods).encode()),
        (
            b"access-control-allow-headers",
            _value(scope["headers"], b"access-control-request-headers") or b"*",
        ),
        (b"access-control-max-age", MAX_AGE),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _value(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((value for key, value in headers if key == name), b"")
