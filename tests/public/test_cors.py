"""Pages of listed origins may call and read every answer, errors too; all other pages may not."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.callers import CALL, CHAT, Answer, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine, Process
from tests.running import Gateway

PAGE = "https://chat.example.com"
STRANGER = "https://evil.example"


@pytest.fixture(scope="module")
async def open_gateway(
    fake_engine_process: Process, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway that pages of one origin may call."""
    folder: Path = tmp_path_factory.mktemp("cors")
    url = f"http://127.0.0.1:{fake_engine_process.port}"
    environ = {"GATEWAY_UPSTREAM_URL": url, "GATEWAY_SERVER__CORS_ORIGINS": PAGE}
    async with Gateway(folder, **environ) as running:
        yield running


async def preflight(gateway: Gateway, origin: str, path: str = CHAT, method: str = "POST") -> Answer:
    """What a browser asks before a page's call."""
    asked = [
        ("access-control-request-method", method),
        ("access-control-request-headers", "authorization,x-stainless"),
    ]
    return await ask(gateway, request("OPTIONS", path, [("origin", origin), *asked]))


async def test_a_listed_page_is_granted_its_call(open_gateway: Gateway) -> None:
    """Without a key, which no preflight carries."""
    answer = await preflight(open_gateway, PAGE)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "authorization,x-stainless"
    assert int(answer.headers["access-control-max-age"]) > 0


async def test_a_strangers_page_is_granted_nothing(open_gateway: Gateway) -> None:
    """The browser reads that from the header that is not there."""
    for answer in (
        await preflight(open_gateway, STRANGER),
        await ask(open_gateway, chat("x", fields=[("origin", STRANGER)])),
    ):
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["vary"] == "origin"


@pytest.mark.parametrize("status", [200, 400, 401, 404, 405, 413, 415])
async def test_every_answer_can_be_read_by_the_page(open_gateway: Gateway, status: int) -> None:
    """What a page cannot read it shows as a network error."""
    origin = [("origin", PAGE)]
    data = {
        200: chat(open_gateway.key, fields=origin),
        400: chat(open_gateway.key, b"no json", origin),
        401: chat("wrong", fields=origin),
        404: chat(open_gateway.key, fields=origin, model="nope"),
        405: request("DELETE", CHAT, origin),
        413: request(
            "POST", CHAT, [*origin, ("x-api-key", open_gateway.key), ("content-length", "99999999")]
        ),
        415: chat(open_gateway.key, b"x", [*origin, ("content-type", "text/plain")]),
    }[status]
    answer = await ask(open_gateway, data)
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == PAGE
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"retry-after", "x-request-id", "x-should-retry", "x-ratelimit-remaining-tokens"} <= set(exposed)


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses"])
async def test_what_limits_and_engines_refuse_can_be_read_too(
    open_gateway: Gateway, fake_engine: FakeEngine, path: str
) -> None:
    """429 and 502, in the dialect of each route."""
    one = (await open_gateway.create_key(name="one", max_parallel=1))["key"]
    body = json.dumps({**CALL, "input": "x", "max_tokens": 5}).encode()
    call = request("POST", path, [("origin", PAGE), ("x-api-key", one)], body)
    await fake_engine.script(scripts.gated("go", scripts.html_502()))
    running = asyncio.create_task(ask(open_gateway, call))
    await fake_engine.wait(running=1)
    limited = await ask(open_gateway, call)
    await fake_engine.open_gate("go")
    for answer, status in ((limited, 429), (await running, 502)):
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "retry-after" in answer.headers["access-control-expose-headers"]


async def test_a_preflight_for_what_is_not_there_is_refused_readably(open_gateway: Gateway) -> None:
    """No route, or another method of one."""
    assert (await preflight(open_gateway, PAGE, "/nothing")).error["code"] == "not_found"
    assert (await preflight(open_gateway, PAGE, method="DELETE")).error["code"] == "method_not_allowed"


async def test_a_plain_options_is_no_preflight(open_gateway: Gateway) -> None:
    """It asks for nothing that could be granted."""
    assert (await ask(open_gateway, request("OPTIONS", CHAT, [("origin", PAGE)]))).status == 405


async def test_without_origins_preflights_get_a_clean_4xx(gateway: Gateway) -> None:
    """The default: no page may call."""
    answer = await preflight(gateway, PAGE)
    assert answer.error["code"] == "method_not_allowed"
    assert "access-control-allow-origin" not in answer.headers
    assert "vary" not in answer.headers
