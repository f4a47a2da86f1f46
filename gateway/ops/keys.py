"""`/admin/keys` and its twins: the same verbs, fields and answers as `gateway keys` on the command line."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Depends, Request, Response

from gateway.keys import Keyring
from gateway.ops.bodies import Fields, OptionalFields, answer


def router(keyring: Keyring, administrator: Callable[[Request], Awaitable[None]]) -> APIRouter:
    """The routes, each behind `administrator` (see `admin`). The application renders the GatewayErrors."""
    routes = APIRouter(prefix="/admin/keys", dependencies=[Depends(administrator)])

    @routes.post("")
    async def create(fields: Fields) -> Response:
        return answer((await keyring.create(fields)).as_json(), 201)

    @routes.get("")
    async def list_all() -> Response:
        return answer([key.as_json() for key in await keyring.list_all()])

    @routes.get("/{key_id}")
    async def show(key_id: str) -> Response:
        return answer((await keyring.show(key_id)).as_json())

    @routes.patch("/{key_id}")
    async def update(key_id: str, fields: Fields) -> Response:
        return answer((await keyring.update(key_id, fields)).as_json())

    @routes.delete("/{key_id}")
    async def revoke(key_id: str) -> Response:
        return answer((await keyring.revoke(key_id)).as_json())

    @routes.post("/{key_id}/rotate")
    async def rotate(key_id: str, fields: OptionalFields) -> Response:
        return answer((await keyring.rotate(key_id, fields)).as_json())

    return routes
