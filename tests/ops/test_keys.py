"""The admin API's keys, over a real socket: the same verbs and refusals as on the command line."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from gateway.errors import handlers
from gateway.keys import Directory, Keyring
from gateway.metrics import Metrics
from gateway.ops.admin import administrator
from gateway.ops.bodies import MAX_BODY_BYTES
from gateway.ops.keys import router
from gateway.store import Store

ADMIN = "a token of an operator"
UNKNOWN = "/admin/keys/abcdefghijkl"
BEARER = {"authorization": f"Bearer {ADMIN}"}


@asynccontextmanager
async def listening(keyring: Keyring, token: str | None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that has these routes alone."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    handlers.install(app)
    app.include_router(router(keyring, administrator(None if token is None else SecretStr(token))))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            yield client
        server.should_exit = True
        await serving


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[tuple[Store, Directory]]:
    """What a server has of the keys."""
    async with Store(tmp_path) as store, Directory(store, Metrics()) as running:
        yield store, running


@pytest.fixture
async def client(directory: tuple[Store, Directory]) -> AsyncIterator[httpx.AsyncClient]:
    """An operator with the right token."""
    store, running = directory
    async with listening(Keyring(store, running.refresh), ADMIN) as opened:
        opened.headers.update(BEARER)
        yield opened


def error(response: httpx.Response) -> dict[str, Any]:
    """The error object of a refusal, in OpenAI's shape."""
    assert response.headers["content-type"] == "application/json"
    told: dict[str, Any] = response.json()["error"]
    assert told.keys() == {"message", "type", "param", "code"}
    return told


async def test_a_key_lives_from_creation_to_revocation(
    client: httpx.AsyncClient, directory: tuple[Store, Directory]
) -> None:
    """Each verb answers the key object, and the server acts on it before it answers."""
    find = directory[1].find
    created = await client.post("/admin/keys", json={"name": "alice", "rpm": 30})
    made = created.json()
    path = f"/admin/keys/{made['id']}"
    assert created.status_code == 201
    assert made["key"].startswith(f"sk-gw-{made['id']}-")
    assert find(made["key"].encode()).rpm == 30

    shown = (await client.get(path)).json()
    assert {"key": made["key"], **shown} == made
    assert (await client.get("/admin/keys")).json() == [shown]

    changed = await client.patch(f"/admin/keys/sk-gw-{made['id']}", json={"rpm": None, "tpm": "unlimited"})
    assert changed.json() == {**shown, "tpm": "unlimited", "rpm": None}
    assert find(made["key"].encode()).rpm is None

    rotated = (await client.post(f"{path}/rotate", json={"overlap": "1h"})).json()
    assert rotated["id"] == made["id"]
    assert find(rotated["key"].encode()) == find(made["key"].encode())

    revoked = await client.delete(path)
    assert revoked.status_code == 200
    assert revoked.json()["revoked_at"] is not None
    for token in (made["key"], rotated["key"]):
        with pytest.raises(Exception, match="Incorrect API key"):
            find(token.encode())


async def test_a_rotation_needs_no_body(client: httpx.AsyncClient) -> None:
    """As the command needs no option."""
    made = (await client.post("/admin/keys", json={"name": "a"})).json()
    rotated = await client.post(f"/admin/keys/{made['id']}/rotate")
    assert rotated.status_code == 200
    assert rotated.json()["key"] != made["key"]


async def test_answers_that_hold_a_key_are_not_kept(client: httpx.AsyncClient) -> None:
    """By no cache on the way."""
    created = await client.post("/admin/keys", json={"name": "a"})
    assert created.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/admin/keys"),
        ("GET", "/admin/keys"),
        ("GET", UNKNOWN),
        ("PATCH", UNKNOWN),
        ("DELETE", UNKNOWN),
        ("POST", f"{UNKNOWN}/rotate"),
    ],
)
async def test_nothing_is_there_without_an_admin_token(
    directory: tuple[Store, Directory], method: str, path: str
) -> None:
    """No setting, no admin API: 404, whatever is shown. With one, 401 before the body is looked at."""
    async with listening(Keyring(directory[0]), None) as client:
        off = await client.request(method, path, headers=BEARER, content=b"{")
    assert (off.status_code, error(off)["code"]) == (404, "not_found")
    assert "GATEWAY_ADMIN_TOKEN" in error(off)["message"]
    async with listening(Keyring(directory[0]), ADMIN) as client:
        refused = await client.request(method, path, content=b"{")
    assert (refused.status_code, error(refused)["code"]) == (401, "invalid_api_key")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "values",
    [
        [b"Bearer wrong"],
        [b"Bearer"],
        [b""],
        [b"Bearer caf\xe9"],
        [b"Basic " + ADMIN.encode()],
        [ADMIN.encode()],
        [f"Bearer {ADMIN}".encode(), f"Bearer {ADMIN}".encode()],
    ],
)
async def test_other_credentials_are_refused(client: httpx.AsyncClient, values: list[bytes]) -> None:
    """401 and never 500, for bytes of any kind."""
    del client.headers["authorization"]
    response = await client.get("/admin/keys", headers=[(b"authorization", value) for value in values])
    assert (response.status_code, error(response)["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize("value", [f"bearer {ADMIN}", f"BEARER   {ADMIN}"])
async def test_the_scheme_comes_in_any_case(client: httpx.AsyncClient, value: str) -> None:
    """As for callers."""
    assert (await client.get("/admin/keys", headers={"authorization": value})).status_code == 200


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b"null", "invalid_json", None),
        (b'{"name": "a", "weight": NaN}', "invalid_json", None),
        (b'{"name": "\xff"}', "invalid_json", None),
        (b'{"rpm": 5}', "invalid_request", "name"),
        (b'{"name": "a", "rpm": 0}', "invalid_request", "rpm"),
        (b'{"name": "a", "rmp": 5}', "invalid_request", "rmp"),
        (b'{"name": "a", "key": "short"}', "invalid_request", "key"),
        (b'{"name": "a", "id": "abcdefghijkl"}', "invalid_request", "id"),
        (b'{"name": "a", "force": {"chat_template_kwargs": {"tools": []}}}', "invalid_request", "force"),
    ],
)
async def test_a_bad_body_is_a_400_that_names_the_field(
    client: httpx.AsyncClient, body: bytes, code: str, param: str | None
) -> None:
    """In OpenAI's shape, and nothing is created."""
    response = await client.post("/admin/keys", content=body)
    assert response.status_code == 400
    assert (error(response)["code"], error(response)["param"]) == (code, param)
    assert (await client.get("/admin/keys")).json() == []


async def test_a_body_without_end_is_refused(client: httpx.AsyncClient) -> None:
    """An operator's broken script must not fill the memory."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b" " * 65536

    response = await client.post("/admin/keys", content=endless())
    assert (response.status_code, error(response)["code"]) == (413, "request_too_large")


async def test_an_unknown_key_is_a_404(client: httpx.AsyncClient) -> None:
    """On each route with an id."""
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/rotate")):
        response = await client.request(
            method, UNKNOWN + path, json={"rpm": 1} if method == "PATCH" else None
        )
        assert (response.status_code, error(response)["code"]) == (404, "not_found")


async def test_a_store_that_is_gone_is_a_503(
    client: httpx.AsyncClient, directory: tuple[Store, Directory]
) -> None:
    """With what is wrong: the one who asks can mend it."""
    directory[0].path.unlink()
    response = await client.get("/admin/keys")
    assert (response.status_code, error(response)["code"]) == (503, "key_store_unavailable")
    assert str(directory[0].path) in error(response)["message"]
