"""The journey of one live call: key, body, policy, limits, engine; everything given back on every path."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from gateway.access import find_key
from gateway.engines import Body, Registry
from gateway.errors import CallerError, ClientClosed, GatewayError, ShuttingDown
from gateway.keys import Directory, Key
from gateway.limits import Limits
from gateway.metrics import Metrics
from gateway.policy import Catalogue, Salts, apply
from gateway.public import body as bodies
from gateway.public import document
from gateway.public.form import Form
from gateway.relay import CALLER, Bookings, Call, Calls, Out, Passage, Relay
from gateway.routes import BY_TEMPLATE
from gateway.settings import Settings
from gateway.settings.sections import DefaultLimits
from gateway.usage import Estimates, Record

DRAIN_RETRY_SECONDS = 5
LONG_PROMPT_TOKENS = 500  # few models take fewer: only above is it asked how many this one takes
Written = tuple[Body, bytes]
"""A body for the engine and its content type."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a reload replaces, in one step: a call sees either all old rules or all new ones."""

    settings: Settings
    catalogue: Catalogue


@dataclass(slots=True)
class Live:
    """Serves the routes that go to an engine. `rules` is assigned anew on reload, all else stays."""

    rules: Rules
    registry: Registry
    directory: Directory
    limits: Limits
    estimates: Estimates
    bookings: Bookings
    relay: Relay
    calls: Calls
    bodies: bodies.Bodies
    metrics: Metrics
    salts: Salts

    async def __call__(self, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
        """Answer one call. Raises GatewayError if it is refused before anything was sent."""
        key = self.authenticate(scope, record)
        call = self.calls.open(key, record)
        scope["extensions"][CALLER].on_lost(lambda: call.cut(_left()))
        try:
            await self._serve(call, scope, receive, send)
        except asyncio.CancelledError:
            reason = call.take_reason()
            if reason is None:
                raise
            raise reason from None
        except CallerError as error:
            if not call.booked:
                await self.bookings.refuse(*self._limited(key), error)
            raise
        finally:
            self.calls.close(call)

    def authenticate(self, scope: Scope, record: Record) -> Key:
        """The caller's key: the request is one of it, and its answer tells how the key's limits stand.

        Raises ShuttingDown to everybody once the gateway was told to stop; else what `find_key` raises.
        """
        try:
            key = find_key(scope["headers"], self.directory)
        except GatewayError:
            if self.calls.draining:
                raise shutting_down() from None
            raise
        record.key_id = key.id
        record.limit_headers = lambda: self.limits.headers(*self._limited(key))
        if self.calls.draining:
            raise shutting_down()
        return key

    def _limited(self, key: Key) -> tuple[Key, DefaultLimits]:
        """Whose limits hold now: a call may have begun under others, and must not bring those back."""
        return self.directory.current(key), self.rules.settings.limits.default

    async def _serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        rules = self.rules
        max_bytes, out = rules.settings.server.max_body_bytes, Out(send, scope["extensions"][CALLER])
        with self.bodies.hold(call.key.id, max_bytes) as held:
            if BY_TEMPLATE[call.record.route].body == "form":
                with Form(rules.settings.data_dir / "spool", held) as form:
                    await form.read(scope["headers"], receive, max_bytes, call.record)
                    await self._run(call, self._prepare(rules, call, form.fields(), form.write), out)
                return
            raw = await bodies.read(scope["headers"], receive, held, max_bytes, call.record)
            passage = self._prepare(rules, call, document.parse(raw), document.write)
            del raw
            passage.release = held.let_go
            await self._run(call, passage, out)

    async def _run(self, call: Call, passage: Passage, out: Out) -> None:
        key, defaults = self._limited(call.key)
        booking = await self.bookings.open(call, key, defaults, passage.route, passage.ask)
        try:
            await self.relay.run(call, passage, out)
        except GatewayError as error:
            booking.refuse(error)
            raise
        finally:
            booking.close()

    def _prepare(
        self, rules: Rules, call: Call, body: dict[str, Any], write: Callable[[dict[str, Any]], Written]
    ) -> Passage:
        if not self.registry.discovered:
            raise self.registry.undiscovered()
        record = call.record
        target = rules.catalogue.find(body.get("model"), call.key)
        record.model = target.model.id
        prepared = apply(
            body,
            route=record.route,
            target=target,
            key=call.key,
            policy=rules.settings.policy,
            salt=self.salts.of(call.key.cache_group),
        )
        for field in prepared.dropped:
            self.metrics.fields_dropped.labels(field).inc()
        route = BY_TEMPLATE[record.route]
        ask = self.estimates.ask(
            prepared.body, route=route, model=record.model, key_id=call.key.id, choices=prepared.choices
        )
        if ask.prompt > LONG_PROMPT_TOKENS and (most := self.registry.max_model_len(target.model)):
            ask = ask.within(most)
        content, content_type = write(prepared.body)
        return Passage(
            route=route,
            model=target.model,
            body=content,
            ask=ask,
            include_usage=prepared.include_usage,
            choices=prepared.choices,
            content_type=content_type,
        )


def shutting_down() -> ShuttingDown:
    """The refusal of a gateway that was told to stop."""
    return ShuttingDown("The gateway is shutting down. Try again shortly.", retry_after=DRAIN_RETRY_SECONDS)


def _left() -> ClientClosed:
    return ClientClosed("The caller left.")
