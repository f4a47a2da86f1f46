"""Every error on the Messages routes is in Anthropic's shape, wherever it is made; no other is."""

import asyncio
import json

import pytest

from gateway.errors import InvalidRequest, anthropic
from tests.callers import CALL, MODEL, Answer, ask, chat, request
from tests.fake_engine import dialects, scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

MESSAGES = "/v1/messages"
ROUTES = (MESSAGES, MESSAGES + "/count_tokens")
BODY = {**CALL, "max_tokens": 5}


def call(gateway: Gateway, path: str = MESSAGES, key: str | None = None, **fields: object) -> bytes:
    """A call as Anthropic's clients make it, as bytes."""
    headers = [("x-api-key", gateway.key if key is None else key), ("anthropic-version", "2023-06-01")]
    return request("POST", path, headers, json.dumps({**BODY, **fields}).encode())


def kind(answer: Answer) -> str:
    """The error's type; fails if the body is not exactly Anthropic's shape."""
    assert answer.headers["content-type"] == "application/json"
    document = json.loads(answer.body)
    assert set(document) == {"type", "error", "request_id"}
    assert document["type"] == "error"
    assert document["request_id"] == answer.headers["x-request-id"]
    assert set(document["error"]) == {"type", "message"}
    assert document["error"]["message"]
    said: str = document["error"]["type"]
    return said


@pytest.mark.parametrize("path", ROUTES)
async def test_what_the_gateway_refuses_has_anthropics_type(gateway: Gateway, path: str) -> None:
    """No key, no such model, a bad body, another method, too much, another content type."""
    key = ("x-api-key", gateway.key)
    refusals = {
        "authentication_error": call(gateway, path, key="wrong"),
        "not_found_error": call(gateway, path, model="nope"),
        "request_too_large": request("POST", path, [key, ("content-length", "99999999")]),
    }
    for said, data in refusals.items():
        assert kind(await ask(gateway, data)) == said
    for status, data in {
        400: request("POST", path, [key], b"no json"),
        405: request("GET", path, [key]),
        415: request("POST", path, [key, ("content-type", "text/plain")], b"x"),
    }.items():
        answer = await ask(gateway, data)
        assert (answer.status, kind(answer)) == (status, "invalid_request_error")
        assert ("allow" in answer.headers) == (status == 405)


async def test_a_401_keeps_its_challenge(gateway: Gateway) -> None:
    """The headers of an error are the same in every shape."""
    assert (await ask(gateway, call(gateway, key=""))).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/v1/messages/batches", "/v1/messages/", "/v1/messages/nothing"])
async def test_what_lies_under_the_route_is_asked_for_by_the_same_clients(
    gateway: Gateway, path: str
) -> None:
    """A trailing slash is the route itself; the others are not there."""
    answer = await ask(gateway, request("GET", path, [("x-api-key", gateway.key)]))
    assert kind(answer) == ("invalid_request_error" if answer.status == 405 else "not_found_error")


@pytest.mark.parametrize("path", ["/v1/messages2", "/messages", "/v1/responses", "/v1/models/nope"])
async def test_all_other_paths_keep_openais_shape(gateway: Gateway, path: str) -> None:
    """Whatever headers are sent along."""
    headers = [("x-api-key", gateway.key), ("anthropic-version", "2023-06-01")]
    assert (await ask(gateway, request("GET", path, headers))).error["type"] == "invalid_request_error"


async def test_the_limit_and_the_engines_absence_say_when_to_come_back(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """429 and 503 with `Retry-After`, which Anthropic's SDK honours as OpenAI's does."""
    key = (await gateway.create_key(name="one", max_parallel=1))["key"]
    await fake_engine.script(scripts.gated("go", scripts.answer(json.dumps(dialects.message()))))
    running = asyncio.create_task(ask(gateway, call(gateway, key=key)))
    await fake_engine.wait(running=1)
    limited = await ask(gateway, call(gateway, key=key))
    assert (limited.status, kind(limited), limited.headers["retry-after"]) == (429, "rate_limit_error", "1")
    await fake_engine.open_gate("go")
    assert json.loads((await running).body) == dialects.message()
    await fake_engine.listen(on=False)
    away = await ask(gateway, call(gateway))
    assert (away.status, kind(away), away.headers["retry-after"]) == (503, "overloaded_error", "15")
    await fake_engine.listen(on=True)


async def test_an_engines_page_is_an_api_error(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """What only the operator can mend."""
    await fake_engine.script(scripts.html_502())
    answer = await ask(gateway, call(gateway))
    assert (answer.status, kind(answer)) == (502, "api_error")
    assert b"html" not in answer.body


async def test_the_same_call_in_openais_dialect_is_openais(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """The route decides, nothing else."""
    await fake_engine.script(scripts.html_502())
    assert (await ask(gateway, chat(gateway.key, model=MODEL))).error["code"] == "engine_error"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "invalid_request_error"), (401, "authentication_error"), (403, "permission_error"),
        (404, "not_found_error"), (405, "invalid_request_error"), (413, "request_too_large"),
        (415, "invalid_request_error"), (429, "rate_limit_error"), (431, "invalid_request_error"),
        (500, "api_error"), (502, "api_error"), (503, "overloaded_error"), (504, "api_error"),
        (507, "api_error"),
    ],
)  # fmt: skip
def test_each_status_has_its_type(status: int, said: str) -> None:
    """As Anthropic's own API has them."""
    assert anthropic.kind(status) == said


def test_without_an_id_there_is_none() -> None:
    """In the middle of a stream the head has told it already."""
    body = json.loads(anthropic.body(InvalidRequest("Why.")))
    assert body == {"type": "error", "error": {"type": "invalid_request_error", "message": "Why."}}
