"""Model names: what is malformed, what is unknown, and the list that a key sees."""

import json
from typing import Any

import pytest

from tests.callers import CALL, Answer, ask, chat, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

LONG = "m" * 200_000


async def named(gateway: Gateway, model: Any) -> Answer:
    """A chat call with this `model`."""
    return await ask(gateway, chat(gateway.key, model=model))


@pytest.mark.parametrize("model", [None, 5, 1.5, True, ["fake-model"], {"id": "fake-model"}, ""])
async def test_a_malformed_model_is_400_and_named(
    gateway: Gateway, fake_engine: FakeEngine, model: Any
) -> None:
    """With several models none is meant by silence either."""
    answer = await named(gateway, model)
    assert answer.status == 400
    assert (answer.error["code"], answer.error["param"]) == ("invalid_request", "model")
    assert await fake_engine.requests() == []


async def test_a_missing_model_is_400_where_there_are_several(gateway: Gateway) -> None:
    """The message says where to look."""
    answer = await ask(gateway, chat(gateway.key, json.dumps({"messages": CALL["messages"]}).encode()))
    assert answer.error["param"] == "model"
    assert "/v1/models" in answer.error["message"]


@pytest.mark.parametrize(
    "model",
    [
        "nope",
        " fake-model",
        "fake-model ",
        "Fake-Model",
        "fake-model:",
        "fake-model:nope",
        "claude",
        "\u2603",
    ],
)
async def test_an_unknown_model_is_404(gateway: Gateway, fake_engine: FakeEngine, model: str) -> None:
    """Names are exact; the engine is not asked."""
    answer = await named(gateway, model)
    assert answer.status == 404
    assert (answer.error["code"], answer.error["param"]) == ("model_not_found", "model")
    assert await fake_engine.requests() == []


@pytest.mark.parametrize("model", [LONG, [LONG], {"a": LONG}], ids=["text", "list", "object"])
async def test_a_name_of_200_kb_is_cut_in_the_message(gateway: Gateway, model: Any) -> None:
    """A caller's value is worth 100 characters."""
    answer = await named(gateway, model)
    assert answer.status in (400, 404)
    assert LONG[:90] in answer.error["message"]
    assert LONG[:101] not in answer.error["message"]


@pytest.mark.parametrize(
    "model", ["fake-model", "default", "org/model", "claude-sonnet-4-5", "fake-model:thinking", "other-model"]
)
async def test_every_name_of_a_model_is_sent_as_the_engines(
    gateway: Gateway, fake_engine: FakeEngine, model: str
) -> None:
    """Ids, aliases, patterns and variants."""
    assert (await named(gateway, model)).status == 200
    assert (await fake_engine.requests())[0].json()["model"] == "fake-model"


async def listed(gateway: Gateway, key: str) -> list[str]:
    """The ids that a key's list holds."""
    answer = await ask(gateway, request("GET", "/v1/models", [("x-api-key", key)]))
    document = json.loads(answer.body)
    assert document["object"] == "list"
    for entry in document["data"]:
        assert set(entry) == {"id", "object", "created", "owned_by"}
        assert (entry["object"], type(entry["created"])) == ("model", int)
    return [entry["id"] for entry in document["data"]]


async def test_the_list_holds_what_a_key_can_use(gateway: Gateway) -> None:
    """All names for a key without restriction, otherwise those that its models cover."""
    all_names = ["fake-model", "default", "org/model", "fake-model:thinking", "other-model"]
    assert await listed(gateway, gateway.key) == all_names
    other = await gateway.create_key(name="other", models=["other-model"])
    assert await listed(gateway, other["key"]) == ["other-model"]
    variant = await gateway.create_key(name="variant", models=["fake-model:thinking"])
    assert await listed(gateway, variant["key"]) == ["fake-model:thinking"]


async def test_a_model_is_retrieved_by_any_of_its_names(gateway: Gateway) -> None:
    """As the list would show it, under the name that was asked for."""
    for name in ("fake-model", "default", "org/model", "org%2Fmodel", "claude-x", "fake-model:thinking"):
        answer = await ask(gateway, request("GET", f"/v1/models/{name}", [("x-api-key", gateway.key)]))
        assert json.loads(answer.body)["id"] == name.replace("%2F", "/")


async def test_what_a_key_may_not_use_does_not_exist_for_it(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """Retrieved or called: the same 404 as for a name that nobody has, and counted as a failure."""
    key = (await gateway.create_key(name="narrow", models=["other-model"]))["key"]
    route = "/v1/models/{id}"
    before = await gateway.metric("gateway_requests_total", reason="model_not_found", route=route)
    messages = {}
    for name in ("fake-model", "nope"):
        called = await ask(gateway, chat(key, model=name))
        retrieved = await ask(gateway, request("GET", f"/v1/models/{name}", [("x-api-key", key)]))
        assert called.status == retrieved.status == 404
        assert called.error == retrieved.error
        messages[name] = called.error["message"]
        line = await gateway.request_line(retrieved.headers["x-request-id"])
        assert line["reason"] == "model_not_found"
    assert messages["nope"] == messages["fake-model"].replace("fake-model", "nope")
    assert await gateway.metric("gateway_requests_total", reason="model_not_found", route=route) - before == 2
    assert await fake_engine.requests() == []
