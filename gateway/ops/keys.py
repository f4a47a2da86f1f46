"""`/admin/keys` and its twins: the same verbs, fields and answers as `gateway keys` on the command line."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Request, Response

from gateway.errors import InvalidJson, RequestTooLarge
from gateway.keys import Keyring, parse_json

MAX_BODY_BYTES = 1_048_576


async def _fields(request: Request) -> dict[str, Any]:
    return _object(await _body(request))


async def _optional_fields(request: Request) -> dict[str, Any]:
    body = await _body(request)
    return _object(body) if body.strip() else {}


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise RequestTooLarge(f"The body is larger than {MAX_BODY_BYTES} bytes.")
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    # FastAPI's own parser would let NaN and lone surrogates pass.
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidJson('The body must be a JSON object, for example {"name": "alice"}.')
    return value


Fields = Annotated[dict[str, Any], Depends(_fields)]
OptionalFields = Annotated[dict[str, Any], Depends(_optional_fields)]


def router(keyring: Keyring, administrator: Callable[[Request], Awaitable[None]]) -> APIRouter:
    """The routes, each behind `administrator` (see `admin`). The application renders the GatewayErrors."""
    routes = APIRouter(prefix="/admin/keys", dependencies=[Depends(administrator)])

    @routes.post("")
    async def create(fields: Fields) -> Response:
        return _json((await keyring.create(fields)).as_json(), 201)

    @routes.get("")
    async def list_all() -> Response:
        return _json([key.as_json() for key in await keyring.list_all()])

    @routes.get("/{key_id}")
    async def show(key_id: str) -> Response:
        return _json((await keyring.show(key_id)).as_json())

    @routes.patch("/{key_id}")
    async def update(key_id: str, fields: Fields) -> Response:
        return _json((await keyring.update(key_id, fields)).as_json())

    @routes.delete("/{key_id}")
    async def revoke(key_id: str) -> Response:
        return _json((await keyring.revoke(key_id)).as_json())

    @routes.post("/{key_id}/rotate")
    async def rotate(key_id: str, fields: OptionalFields) -> Response:
        return _json((await keyring.rotate(key_id, fields)).as_json())

    return routes


def _json(value: object, status: int = 200) -> Response:
    # An answer may hold a key, which is for its reader alone.
    return Response(orjson.dumps(value), status, {"cache-control": "no-store"}, "application/json")
