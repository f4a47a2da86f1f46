"""The journey of one live call: key, body, policy, limits, engine; everything given back on every path."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from gateway import limits
from gateway.access import find_key
from gateway.engines import Registry
from gateway.errors import ClientClosed, ShuttingDown
from gateway.keys import Directory
from gateway.metrics import Metrics
from gateway.policy import Catalogue, apply
from gateway.public import body as bodies
from gateway.relay import CALLER, Call, Calls, Out, Passage, Relay
from gateway.settings import Settings
from gateway.usage import Record

DRAIN_RETRY_SECONDS = 5


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
    limits: limits.Limits
    relay: Relay
    calls: Calls
    bodies: bodies.Bodies
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
        """Answer one call. Raises GatewayError if it is refused before anything was sent."""
        if self.calls.draining:
            raise shutting_down()
        key = find_key(scope["headers"], self.directory)
        record.key_id = key.id
        call = self.calls.open(key, record)
        scope["extensions"][CALLER].on_lost(lambda: call.cut(_left()))
        try:
            await self._serve(call, scope, receive, send)
        except asyncio.CancelledError:
            reason = call.take_reason()
            if reason is None:
                raise
            raise reason from None
        finally:
            self.calls.close(call)

    async def _serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        rules = self.rules
        with self.bodies.hold() as held:
            raw = await bodies.read(scope["headers"], receive, held, rules.settings.server.max_body_bytes)
            call.record.read = time.monotonic()
            passage = self._prepare(rules, call, bodies.parse(raw))
            del raw
            lease = self.limits.reserve(call.key, rules.settings.limits.default)
            try:
                await self.relay.run(call, passage, Out(send, scope["extensions"][CALLER]))
            finally:
                lease.release()

    def _prepare(self, rules: Rules, call: Call, body: dict[str, Any]) -> Passage:
        if not self.registry.discovered:
            raise self.registry.undiscovered()
        record = call.record
        target = rules.catalogue.find(body.get("model"), call.key)
        record.model = target.model.id
        prepared = apply(body, route=record.route, target=target, key=call.key, policy=rules.settings.policy)
        for field in prepared.dropped:
            self.metrics.fields_dropped.labels(field).inc()
        return Passage(
            route=record.route,
            model=target.model,
            body=orjson.dumps(prepared.body),
            include_usage=prepared.include_usage,
            choices=prepared.choices,
        )


def shutting_down() -> ShuttingDown:
    """The refusal of a gateway that was told to stop."""
    return ShuttingDown("The gateway is shutting down. Try again shortly.", retry_after=DRAIN_RETRY_SECONDS)


def _left() -> ClientClosed:
    return ClientClosed("The caller left.")
