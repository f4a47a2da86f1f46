"""The admin API's usage, over a real socket: the questions and answers of `gateway usage`."""

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from gateway.errors import handlers
from gateway.ops.admin import administrator
from gateway.ops.usage import router
from gateway.store import UsageStore
from tests.store import harm
from tests.store.usage_rows import NOON, row

ADMIN = "a token of an operator"
NAMES = ("requests", "errors", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[UsageStore]:
    """An open database, whose days begin in Kathmandu."""
    async with UsageStore(tmp_path / "data", zone=ZoneInfo("Asia/Kathmandu")) as opened:
        yield opened


@pytest.fixture
async def client(store: UsageStore) -> AsyncIterator[httpx.AsyncClient]:
    """An operator with the right token."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    handlers.install(app)
    app.include_router(router(store, administrator(SecretStr(ADMIN))))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        headers = {"authorization": f"Bearer {ADMIN}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as opened:
            yield opened
        server.should_exit = True
        await serving


async def ask(client: httpx.AsyncClient, **question: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    answer = await client.get("/admin/usage", params=question)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    rows: list[dict[str, Any]] = answer.json()
    return rows


async def test_it_answers_by_each_grouping(client: httpx.AsyncClient, store: UsageStore) -> None:
    """An array of rows that hold the group's field and exactly the counts; empty where nothing was used."""
    since = "2026-11-30"
    assert await ask(client, since=since, until="2026-12-02") == []
    await store.write([row(NOON + timedelta(hours=hour), estimated=hour == 1) for hour in (1, 2, 7)])
    assert await ask(client, since=since) == [
        {"key": "aaaaaaaaaaaa", **dict(zip(NAMES, (3, 0, 30, 0, 15, 0), strict=True)), "estimated_tokens": 15}
    ]
    assert [each["model"] for each in await ask(client, since=since, by="model")] == ["m"]
    assert [each["route"] for each in await ask(client, since=since, by="route")] == ["/v1/completions"]
    days = await ask(client, since=since, by="day")
    assert [(each["day"], each["requests"]) for each in days] == [("2026-11-30", 2), ("2026-12-01", 1)]
    hours = await ask(client, since=since, by="hour", until="2026-12-01")
    assert [each["hour"] for each in hours] == ["2026-11-30T18:00:00+05:45", "2026-11-30T19:00:00+05:45"]


async def test_without_a_question_it_is_the_last_week_by_key(
    client: httpx.AsyncClient, store: UsageStore
) -> None:
    """As `gateway usage` without options."""
    now = datetime.now(UTC)
    await store.write([row(now - timedelta(days=8)), row(now - timedelta(days=6)), row(now)])
    assert [(each["key"], each["requests"]) for each in await ask(client)] == [("aaaaaaaaaaaa", 2)]
    assert await ask(client, key="sk-gw-aaaaaaaaaaaa", model="m") == await ask(client)
    assert await ask(client, key="zzzzzzzzzzzz") == await ask(client, model="alias") == []


@pytest.mark.parametrize(
    ("question", "param"),
    [
        ("by=week", "by"),
        ("by=", "by"),
        ("since=yesterday", "since"),
        ("since=2026-02-30", "since"),
        ("since=2026-11-30T12:00:00", "since"),
        ("since=9999-12-31", "since"),
        ("since=2d&until=3d", "until"),
        ("until=0001-01-01", "until"),
        ("key=sk-gw-secret-that-nobody-should-see", "key"),
        ("limit=3", "limit"),
        ("by=key&by=model", "by"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(
    client: httpx.AsyncClient, question: str, param: str
) -> None:
    """400 in the error's shape, `param` what to mend, and no secret in it."""
    refused = await client.get(f"/admin/usage?{question}")
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "invalid_request",
        param,
    )
    assert param in error["message"]
    assert "nobody-should-see" not in error["message"]


async def test_a_plus_sign_that_a_url_made_a_space_is_one(
    client: httpx.AsyncClient, store: UsageStore
) -> None:
    """Nobody remembers to write %2B."""
    await store.write([row(NOON)])
    for hour, found in ((12, 1), (13, 0)):
        answer = await client.get(f"/admin/usage?since=2026-11-30T{hour + 1}:00:00+01:00")
        assert (answer.status_code, len(answer.json())) == (200, found)


async def test_far_times_are_times(client: httpx.AsyncClient, store: UsageStore) -> None:
    """What no clock will see is no fault of ours."""
    await store.write([row(NOON)])
    assert len(await ask(client, since="0001-01-02", until="9999-12-31")) == 1
    assert len(await ask(client, since="36500d")) == 1


async def test_a_lost_database_is_told(client: httpx.AsyncClient, store: UsageStore) -> None:
    """503 under its own name, with the file and the mend."""
    mend = harm.rename_directory(store.path)
    told = await client.get("/admin/usage")
    mend()
    assert (told.status_code, told.json()["error"]["code"]) == (503, "usage_store_unavailable")
    assert f"There is no usage database at {store.path}" in told.json()["error"]["message"]
    assert await ask(client) == []


async def test_another_method_is_told_the_right_one(client: httpx.AsyncClient) -> None:
    """In `Allow`, and in words."""
    refused = await client.post("/admin/usage")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
    assert refused.json()["error"]["message"].endswith("use GET.")


async def test_it_is_for_the_operator_alone(client: httpx.AsyncClient) -> None:
    """Without the token there is nothing to read."""
    assert (await client.get("/admin/usage", headers={"authorization": "Bearer x"})).status_code == 401
