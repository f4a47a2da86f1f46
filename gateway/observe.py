"""The outermost ASGI layer: an id for each request, a clock, and a look at the response as it goes out.

Whatever happens inside, one request ends here in one count and, if the operator wants it, one log line.
"""

import re
import time
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import ClientClosed
from gateway.metrics import Metrics
from gateway.routes import OF_ENGINES
from gateway.usage import RECORD, Ledger, Record, count

Networks = Sequence[IPv4Network | IPv6Network]

_ENGINE_ROUTES = frozenset(OF_ENGINES)
_ID_HEADERS = (b"x-request-id", b"x-client-request-id")  # the first that is there counts
_WELL_FORMED_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_log = structlog.get_logger("gateway.request")


class Observe:
    """Wraps an ASGI application. The request's record is `scope[RECORD]`.

    `log_all` and `trusted_proxies` may be assigned anew while it runs.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, ledger: Ledger) -> None:
        self._app = app
        self._metrics = metrics
        self._ledger = ledger
        self.log_all = False
        self.trusted_proxies: Networks = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = scope[RECORD] = Record()

        async def observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                spent_ms = (time.monotonic() - record.started) * 1000
                message["headers"] = [
                    *message["headers"],
                    *(record.limit_headers() if record.limit_headers is not None else ()),
                    (b"x-request-id", record.request_id.encode()),
                    (b"openai-processing-ms", b"%d" % spent_ms),
                ]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            self._close(record, scope)

    def _close(self, record: Record, scope: Scope) -> None:
        if not record.status:
            record.fail(ClientClosed.code)
        self._count(record)
        if record.key_id is not None and record.route in _ENGINE_ROUTES:
            self._ledger.note(
                record,
                status=ClientClosed.status if record.reason == ClientClosed.code else record.status,
                ended_at=time.time(),
                caller_request_id=_callers_id(scope),
            )
        if self.log_all or record.reason != "ok":
            self._write_line(record, scope)

    def _write_line(self, record: Record, scope: Scope) -> None:
        _log.info(
            "request",
            request_id=record.request_id,
            caller_request_id=_callers_id(scope),
            address=_address(scope, self.trusted_proxies),
            method=scope["method"],
            route=record.route,
            model=record.model,
            key=record.key_id,
            status=record.status or ClientClosed.status,
            reason=record.reason,
            cause=record.cause,
            seconds=round(time.monotonic() - record.started, 4),
        )

    def _count(self, record: Record) -> None:
        traffic, now = self._metrics.traffic, time.monotonic()
        series = traffic.series(record.model, record.route)
        series.count(record.status or ClientClosed.status, record.reason)
        series.duration.observe(now - record.started)
        if record.sent:
            series.overhead.observe(record.sent - record.read)
        if record.first_token:
            series.time_to_first_token.observe(record.first_token - record.started)
        if record.key_id is not None:
            traffic.count_for_key(record.key_id, record.status or ClientClosed.status)
            if record.usage is not None:
                count(traffic, record.key_id, record.model, record.usage)
        if record.reason == ClientClosed.code:
            self._metrics.client_disconnects.labels(_phase(record)).inc()


def _phase(record: Record) -> str:
    """How far the request had come when its caller left."""
    if not record.read:
        return "request"
    return "streaming" if record.status else "waiting"


def _callers_id(scope: Scope) -> str | None:
    """The caller's own id for the request, if it is one that may stand in a log line."""
    named = [header for header in scope["headers"] if header[0] in _ID_HEADERS]
    if not named:  # so it is nearly always, and this is asked for every request
        return None
    first = _ID_HEADERS[0] if any(name == _ID_HEADERS[0] for name, _ in named) else _ID_HEADERS[1]
    found = [value for name, value in named if name == first]
    return found[0].decode() if len(found) == 1 and _WELL_FORMED_ID.fullmatch(found[0]) else None


def _address(scope: Scope, trusted: Networks) -> str | None:
    """Where the caller is: the peer, or what the trusted proxies before us say they were called from.

    Each proxy adds its own peer at the end of `X-Forwarded-For`, so it is read from there; whatever stands
    left of the first untrusted address may be the caller's invention.
    """
    address: str | None = scope["client"][0] if scope["client"] else None
    hops = b",".join(_values(scope, b"x-forwarded-for")).split(b",")
    while hops and address is not None and _is_trusted(address, trusted):
        try:
            address = str(ip_address(hops.pop().strip().decode("latin-1")))
        except ValueError:
            break
    return address


def _is_trusted(address: str, trusted: Networks) -> bool:
    found = ip_address(address)
    return any(found in network for network in trusted)


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]
