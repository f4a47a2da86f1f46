"""`GET /admin/usage`: what was used, by key, model, route, day or hour, as `gateway usage --json` prints."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from fastapi import APIRouter, Depends, Request, Response

from gateway.errors import InvalidRequest
from gateway.ops.bodies import answer
from gateway.store import UsageStore
from gateway.usage import question


def router(store: UsageStore, administrator: Callable[[Request], Awaitable[None]]) -> APIRouter:
    """The one route, behind `administrator` (see `admin`). The application renders the GatewayErrors."""
    routes = APIRouter(dependencies=[Depends(administrator)])

    @routes.get("/admin/usage")
    async def usage(request: Request) -> Response:
        asked = question.read(_parameters(request), store.zone, datetime.now(UTC))
        return answer(await asked.answer(store))

    return routes


def _parameters(request: Request) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise InvalidRequest(f"{name} is given twice.", param=name[:100])
        given[name] = value
    return given
