"""`POST /admin/explain` tells before what an engine sees after, of a running gateway."""

from typing import Any

import httpx
import pytest

from gateway.routes import OF_ENGINES
from tests.callers import CHAT, ask, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

SAID = {
    "model": "fake-model:thinking",
    "messages": [{"role": "user", "content": "hello"}],
    "temperature": 0.2,
    "priority": 9,
    "chat_template_kwargs": {"tokenize": True, "lang": None},
    "zzz_future": {"a": [1, 1.0, {"b": None}]},
}


async def explain(gateway: Gateway, **fields: Any) -> httpx.Response:
    """The answer for this question; what is not said is a chat call of the gateway's usual key."""
    asked = {"key": key_id(gateway), "route": CHAT, "body": SAID, **fields}
    return await gateway.admin("POST", "/admin/explain", json=asked)


def key_id(gateway: Gateway) -> str:
    return gateway.key.split("-")[2]


def error(response: httpx.Response) -> dict[str, Any]:
    told: dict[str, Any] = response.json()["error"]
    assert told.keys() == {"message", "type", "param", "code"}
    return told


async def test_it_tells_exactly_what_the_engine_then_gets(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """The body byte for byte, the headers by name, who set each field, and what was dropped."""
    explained = (await explain(gateway)).json()
    assert await fake_engine.requests() == []

    body = httpx.Request("POST", gateway.url, json=SAID).content
    answer = await ask(gateway, request("POST", CHAT, [("authorization", f"Bearer {gateway.key}")], body))
    [seen] = await fake_engine.requests(CHAT)

    assert answer.status == 200
    assert seen.json() == explained["body"]
    assert list(seen.json()) == list(explained["body"])
    framing = {"host", "content-length"}
    assert {name.lower() for name, _ in seen.headers} - framing == explained["headers"].keys()
    assert seen.header("authorization") == "Bearer the-engines-own-key"
    salt = explained["body"].pop("cache_salt")
    assert len(salt) == 22
    assert explained["body"] == {
        "model": "fake-model",
        "messages": SAID["messages"],
        "temperature": 0.2,
        "chat_template_kwargs": {"lang": None, "enable_thinking": True},
        "zzz_future": {"a": [1, 1.0, {"b": None}]},
    }
    assert explained["sources"] == {
        "model": "gateway",
        "messages": "caller",
        "temperature": "caller",
        "chat_template_kwargs.lang": "caller",
        "chat_template_kwargs.enable_thinking": "variant.defaults",
        "zzz_future.a": "caller",
        "cache_salt": "gateway",
    }
    assert explained["dropped"] == ["priority", "chat_template_kwargs.tokenize"]


async def test_no_secret_is_in_the_answer(gateway: Gateway) -> None:
    """The key to the engine is hidden, and the answer is kept by nobody on the way."""
    answer = await explain(gateway)

    assert "the-engines-own-key" not in answer.text
    assert answer.json()["headers"]["authorization"] == "Bearer ***"
    assert answer.json()["headers"]["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"


async def test_the_id_may_be_written_as_people_see_it(gateway: Gateway) -> None:
    """With the prefix, too; a form's fields are a body like any other."""
    voice = await explain(
        gateway, key=f"sk-gw-{key_id(gateway)}", route="/v1/audio/translations", body={"model": "fake-model"}
    )

    assert (voice.status_code, voice.json()["body"]) == (200, {"model": "fake-model"})
    assert voice.json()["headers"]["content-type"].startswith("multipart/form-data")


async def test_keys_of_one_group_share_a_salt(gateway: Gateway) -> None:
    """All others have their own."""
    made = [
        await gateway.create_key(name="a", cache_group=group) for group in ("g-one", "g-one", "g-two", None)
    ]

    one, same, two, own = [
        (await explain(gateway, key=each["id"])).json()["body"]["cache_salt"] for each in made
    ]

    assert one == same
    assert len({one, two, own}) == 3


@pytest.mark.parametrize(
    ("fields", "status", "code", "param"),
    [
        ({"key": "abcdefghijkl"}, 404, "not_found", None),
        ({"key": "nonsense"}, 404, "not_found", None),
        ({"key": 5}, 400, "invalid_request", "key"),
        ({"route": "/v1/chat/completion"}, 400, "invalid_request", "route"),
        ({"route": "/v1/models"}, 400, "invalid_request", "route"),
        ({"route": None}, 400, "invalid_request", "route"),
        ({"body": []}, 400, "invalid_request", "body"),
        ({"body": None}, 400, "invalid_request", "body"),
        ({"bdoy": {}}, 400, "invalid_request", "bdoy"),
        ({"body": {"model": "nope"}}, 404, "model_not_found", "model"),
        ({"body": {}}, 400, "invalid_request", "model"),
        ({"body": {"model": "fake-model", "n": 99}}, 400, "invalid_request", "n"),
        (
            {"route": "/v1/responses", "body": {"model": "fake-model", "background": True}},
            400,
            "invalid_request",
            "background",
        ),
        (
            {"body": {"model": "fake-model", "messages": [{"content": [{"image_url": "http://x"}]}]}},
            400,
            "invalid_request",
            "messages[0].content[0].image_url",
        ),
    ],
)
async def test_what_cannot_be_explained_is_told_as_the_caller_would_be(
    gateway: Gateway, fields: dict[str, Any], status: int, code: str, param: str | None
) -> None:
    """With status, code and `param`; the mistakes of the question itself likewise."""
    refused = await explain(gateway, **fields)

    assert (refused.status_code, error(refused)["code"], error(refused)["param"]) == (status, code, param)


async def test_a_wrong_route_is_told_the_right_ones(gateway: Gateway) -> None:
    """All of them."""
    message = error(await explain(gateway, route="/v1/chat/completion"))["message"]

    assert all(route in message for route in OF_ENGINES)
    assert message.endswith("did you mean /v1/chat/completions?")


async def test_what_a_key_may_not_use_is_refused(gateway: Gateway) -> None:
    """As its caller would be, and so is a key that opens nothing any more."""
    key = await gateway.create_key(name="a", models=["other-model"])
    refused = await explain(gateway, key=key["id"])
    assert (refused.status_code, error(refused)["code"]) == (404, "model_not_found")

    await gateway.admin("DELETE", f"/admin/keys/{key['id']}")
    refused = await explain(gateway, key=key["id"])
    assert (refused.status_code, error(refused)["param"]) == (400, "key")
    assert "revoked" in error(refused)["message"]


async def test_depth_is_no_danger(gateway: Gateway) -> None:
    """As for a caller: an error, and never a fault of the gateway's own."""
    for depth in (130, 900):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        asked = b'{"key": "%s", "route": "%s", "body": %s}' % (key_id(gateway).encode(), CHAT.encode(), deep)
        refused = await gateway.admin("POST", "/admin/explain", content=asked)
        assert (refused.status_code, error(refused)["code"]) == (400, "invalid_json")


async def test_it_is_the_operators_alone(gateway: Gateway) -> None:
    """401 without the token, and nothing of it on the public port."""
    async with httpx.AsyncClient(trust_env=False) as client:
        refused = await client.post(f"{gateway.ops}/admin/explain", json={})
        public = await client.post(f"{gateway.url}/admin/explain", json={})
    assert (refused.status_code, public.status_code) == (401, 404)
