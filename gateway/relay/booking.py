"""What one call owes: reserved before it is sent, settled on what it used, given back on every path.

the engine told the usage            settled on it, and the estimates learn from it
cut, timed out, broken, or untold    settled on what can be known; the row says `estimated`
refused by the engine as a mistake   the request counts, no tokens
refused otherwise, or never sent     nothing counts: the caller got nothing for it
left before it was sent              the request counts, no tokens
"""

import time

from gateway.errors import CallerError, GatewayError
from gateway.keys import Key
from gateway.limits import Limits, Reservation
from gateway.relay.call import Call
from gateway.routes import ROUTES, Route
from gateway.settings.sections import DefaultLimits
from gateway.usage import Ask, Estimates, Usage


class Booking:
    """The account of one call. `settle` or `refuse`, whichever comes first, decides; `close` ends it."""

    __slots__ = ("_ask", "_call", "_estimates", "_open", "_reservation", "_route")

    def __init__(
        self, call: Call, route: Route, ask: Ask, reservation: Reservation, estimates: Estimates
    ) -> None:
        self._call = call
        self._route = route
        self._ask = ask
        self._reservation = reservation
        self._estimates = estimates
        self._open = True

    def settle(self) -> None:
        """Book what the call has used, as its record tells it by now."""
        if not self._open:
            return
        self._open = False
        if not self._route.usage:
            self._reservation.settle(0)
            return
        usage = self._used()
        self._reservation.settle(usage.prompt + usage.completion)

    def refuse(self, error: GatewayError) -> None:
        """The call failed with this error before its answer began."""
        if self._call.record.sent and not self._call.refused:
            self.settle()
        elif self._open:
            self._open = False
            self._reservation.refund(request=not error.costs_a_request)

    def close(self) -> None:
        """The call is over, however it ended: a slot is free again."""
        call = self._call
        try:
            if not self._open:
                return
            if call.reason is not None:
                self.refuse(call.reason)
            elif call.record.sent and not call.refused:
                self.settle()
        finally:
            self._reservation.close()

    def _used(self) -> Usage:
        """The engine's own count; without it, an estimate that goes into the record too."""
        record = self._call.record
        seconds = time.monotonic() - record.sent
        told = record.usage
        if told is not None and not record.estimated:
            first_token_seconds = record.first_token - record.sent if record.first_token else 0.0
            self._estimates.learn(
                self._ask,
                told,
                data_events=record.data_events,
                first_token_seconds=first_token_seconds,
                seconds=seconds,
            )
            return told
        whole = self._call.finished and not record.estimated
        usage = self._estimates.cut(
            self._ask,
            data_events=record.data_events,
            seconds=seconds,
            whole=whole,
            answer_bytes=self._call.answer_bytes,
        )
        if told is not None:  # what the engine had told by then: a Messages stream begins with its prompt
            usage = told._replace(
                prompt=told.prompt or usage.prompt, completion=max(told.completion, usage.completion)
            )
        self._estimates.learn_output(self._ask, usage.completion)
        record.usage, record.estimated = usage, True
        return usage


class Bookings:
    """Opens an account for each call."""

    def __init__(self, limits: Limits, estimates: Estimates) -> None:
        self._limits = limits
        self._estimates = estimates

    async def open(self, call: Call, key: Key, defaults: DefaultLimits, route: Route, ask: Ask) -> Booking:
        """Reserve what the call asks for of its key, as that is now.

        Raises RateLimitExceeded or InsufficientQuota, taking nothing.
        """
        reservation = await self._limits.reserve(key, defaults, ask.tokens, smaller=_SMALLER[route.template])
        booking = Booking(call, route, ask, reservation, self._estimates)
        call.settle = booking.settle
        return booking

    async def refuse(self, key: Key, defaults: DefaultLimits, error: CallerError) -> None:
        """A call that is refused for what it says costs one request. Raises RateLimitExceeded without one."""
        if error.costs_a_request:
            await self._limits.spend_request(key, defaults)


def _smaller(route: Route) -> str:
    """How a call of this route comes to need fewer tokens, for its caller."""
    if not route.generates:
        return "Send less text, or fewer texts at once."
    ways = [f"Send a {route.output_caps[-1]}, or a lower one"]
    if route.body == "form":
        return f"{ways[0]}, or a shorter recording."
    if route.dialect == "openai":
        ways.append("ask for fewer choices")
    return ", ".join((*ways, "or send a shorter prompt."))


_SMALLER = {route.template: _smaller(route) for route in ROUTES}
