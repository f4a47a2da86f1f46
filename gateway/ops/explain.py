"""`/admin/explain`: what would become of a request, and who decides each of its fields; nothing is sent."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response

from gateway.engines import Registry
from gateway.errors import InvalidJson, InvalidRequest, quote
from gateway.keys import Key, Keyring, is_deep
from gateway.ops.bodies import Fields, answer
from gateway.policy import Catalogue, Prepared, Salts, explain
from gateway.relay import Relay
from gateway.routes import BY_TEMPLATE, OF_ENGINES, Route
from gateway.settings import Policy

FIELDS = ("key", "route", "body")
# One value stands for each that is made anew, and for the one that nobody should read.
_MADE_EACH_TIME = "(made for each request)"
_HIDDEN = {"authorization": "Bearer ***"}
_CONTENT_TYPES = {"json": "application/json", "form": "multipart/form-data; boundary=…"}


@dataclass(frozen=True, slots=True)
class Explainer:
    """What a live call is prepared with. `catalogue` and `policy` are asked each time: a reload counts."""

    keyring: Keyring
    registry: Registry
    relay: Relay
    salts: Salts
    catalogue: Callable[[], Catalogue]
    policy: Callable[[], Policy]

    async def answer(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """`body`, `headers`, `sources` and `dropped` for one question: `key`, `route`, `body`.

        Raises InvalidRequest and NotFound for the question itself, and what the caller would be refused with.
        """
        asked = _read(fields)
        key = _usable(await self.keyring.show(asked.key))
        prepared = self._prepare(asked, key)
        return {
            "body": prepared.body,
            "headers": self._headers(asked.route),
            "sources": prepared.sources,
            "dropped": prepared.dropped,
        }

    def _prepare(self, asked: "_Asked", key: Key) -> Prepared:
        if not self.registry.discovered:
            raise self.registry.undiscovered()
        return explain(
            asked.body,
            route=asked.route.template,
            target=self.catalogue().find(asked.body.get("model"), key),
            key=key,
            policy=self.policy(),
            salt=self.salts.of(key.cache_group),
        )

    def _headers(self, route: Route) -> dict[str, str]:
        sent = self.relay.headers(_MADE_EACH_TIME, _CONTENT_TYPES[route.body].encode())
        return {name.decode(): _HIDDEN.get(name.decode(), value.decode()) for name, value in sent}


def router(explainer: Explainer, administrator: Callable[[Request], Awaitable[None]]) -> APIRouter:
    """The one route, behind `administrator` (see `admin`)."""
    routes = APIRouter(dependencies=[Depends(administrator)])

    @routes.post("/admin/explain")
    async def explain_request(fields: Fields) -> Response:
        return answer(await explainer.answer(fields))

    return routes


class _Asked(NamedTuple):
    key: str
    route: Route
    body: dict[str, Any]


def _read(fields: Mapping[str, Any]) -> _Asked:
    for name in fields:
        if name not in FIELDS:
            raise InvalidRequest(f"{quote(name)} is not a field; use {', '.join(FIELDS)}.", param=name[:100])
    key, route, body = (fields.get(name) for name in FIELDS)
    if type(key) is not str:
        raise InvalidRequest("'key' must be the id of a key.", param="key")
    if type(body) is not dict:
        raise InvalidRequest("'body' must be the JSON object that a caller would send.", param="body")
    if is_deep(body):
        raise InvalidJson("The body is nested deeper than 128 levels.")
    return _Asked(key, _route(route), body)


def _route(name: object) -> Route:
    row = BY_TEMPLATE.get(name) if type(name) is str else None
    if row is not None and row.served == "engine":
        return row
    near = difflib.get_close_matches(str(name)[:100], OF_ENGINES, n=1)
    meant = f"; did you mean {near[0]}?" if near else "."
    raise InvalidRequest(f"'route' must be one of {', '.join(OF_ENGINES)}{meant}", param="route")


def _usable(key: Key) -> Key:
    if key.revoked_at is not None or key.has_expired(datetime.now(UTC)):
        raise InvalidRequest(
            f"Key {key.id} is revoked or has expired: its calls are refused with 401.", param="key"
        )
    return key
