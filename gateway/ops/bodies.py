"""JSON of the admin API: read strictly and up to a bound, answered so that nothing on the way keeps it."""

from typing import Annotated, Any

import orjson
from fastapi import Depends, Request, Response

from gateway.errors import InvalidJson, RequestTooLarge
from gateway.keys import parse_json

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


def answer(value: object, status: int = 200) -> Response:
    """A response of JSON. It may hold a key, which is for its reader alone."""
    return Response(orjson.dumps(value), status, {"cache-control": "no-store"}, "application/json")
