"""What a running gateway sends to its engine, and what it refuses before any engine hears of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.policy import Salts
from tests.callers import Answer, ask, request
from tests.fake_engine.handle import FakeEngine
from tests.fake_engine.handle import Process as EngineProcess
from tests.policy.calls import CHAT, COMPLETIONS, HELLO, MESSAGES, RESPONSES
from tests.running import Gateway

SECRET = "a root of derived secrets"
CONFIG = """
[[models]]
id = "qwen"
engines = ["{url}"]
engine_model = "fake-model"
[models.defaults]
temperature = 0.7
chat_template_kwargs = {{ enable_thinking = false, lang = "en" }}

[[models]]
id = "forced"
engines = ["{url}"]
engine_model = "fake-model"
cache_isolation = "none"
[models.force]
chat_template_kwargs = {{ enable_thinking = false }}

[[models]]
id = "other"
engines = ["{url}"]
engine_model = "fake-model"
kind = "openai"

[[models]]
id = "mistral"
engines = ["{url}"]
engine_model = "fake-model"
template_kwargs = false
"""
CHATS: Mapping[str, Any] = {"messages": HELLO}
UNKNOWN = {
    "top_k": 5,
    "min_p": 1.0,
    "structured_outputs": {"json": {"b": 1, "a": [3, 1, 2]}},
    "guided_json": {"type": "object"},
    "zzz_future": {"a": [1, 1.0, None, {"b": []}]},
    "user": "\u2603",
}


@pytest.fixture(scope="module")
async def running(
    fake_engine_process: EngineProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """One gateway with a model of each sort."""
    config = CONFIG.format(url=f"http://127.0.0.1:{fake_engine_process.port}")
    folder: Path = tmp_path_factory.mktemp("policy")
    async with Gateway(folder, config=config, GATEWAY_SECRET=SECRET) as started:
        yield started


async def post(gateway: Gateway, route: str, body: Any, key: str = "") -> Answer:
    """The answer to this body, which may be bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await ask(
        gateway, request("POST", route, [("authorization", f"Bearer {key or gateway.key}")], raw)
    )


async def sent(
    gateway: Gateway, engine: FakeEngine, body: dict[str, Any], route: str = CHAT
) -> dict[str, Any]:
    """The body that the engine gets for this one, without model and salt."""
    await engine.reset()
    answer = await post(gateway, route, body)
    [seen] = await engine.requests(route)
    assert answer.status < 500, answer
    return {name: value for name, value in seen.json().items() if name not in ("model", "cache_salt")}


async def test_unknown_fields_arrive_as_they_were(running: Gateway, fake_engine: FakeEngine) -> None:
    """Values, nesting, order; integers stay integers, 1.0 stays 1.0; what callers may not set is gone."""
    body = {"model": "forced", "priority": 3, "mm_processor_kwargs": {"a": 1}, **CHATS, **UNKNOWN}

    assert (await post(running, CHAT, body)).status == 200

    [seen] = await fake_engine.requests(CHAT)
    expected = {"model": "fake-model", **CHATS, **UNKNOWN, "chat_template_kwargs": {"enable_thinking": False}}
    assert seen.body == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("said", "kwargs"),
    [
        ({}, {"enable_thinking": False, "lang": "en"}),
        ({"chat_template_kwargs": None}, {"enable_thinking": False, "lang": "en"}),
        ({"chat_template_kwargs": {}}, {"enable_thinking": False, "lang": "en"}),
        (
            {"chat_template_kwargs": {"enable_thinking": True, "foo": 1}},
            {"enable_thinking": True, "foo": 1, "lang": "en"},
        ),
    ],
)
async def test_defaults_fill_what_the_caller_leaves_out(
    running: Gateway, fake_engine: FakeEngine, said: dict[str, Any], kwargs: dict[str, Any]
) -> None:
    """And wipe nothing of the caller's."""
    body = await sent(running, fake_engine, {"model": "qwen", **CHATS, **said})

    assert body["chat_template_kwargs"] == kwargs


async def test_a_forced_policy_holds_in_every_spelling(running: Gateway, fake_engine: FakeEngine) -> None:
    """Names that no engine acts on, and the caller's unrelated ones, survive."""
    said = {
        "enable_thinking": True,
        "reasoning_effort": "high",
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "thinking_mode": "on", "foo": 1},
    }
    body = await sent(running, fake_engine, {"model": "forced", **CHATS, **said})

    assert body == {
        **CHATS,
        "enable_thinking": True,
        "chat_template_kwargs": {"enable_thinking": False, "thinking_mode": "on", "foo": 1},
    }


async def test_kwargs_go_only_where_a_template_is_rendered(running: Gateway, fake_engine: FakeEngine) -> None:
    """And not at all to a model that takes none."""
    for route, body in ((COMPLETIONS, {"prompt": "x"}), ("/v1/embeddings", {"input": "x"})):
        assert "chat_template_kwargs" not in await sent(
            running, fake_engine, {"model": "qwen", **body}, route
        )
    words: list[dict[str, Any]] = [{}, {"chat_template_kwargs": {}}, {"thinking": {"type": "enabled"}}]
    for said in words:
        plain = await sent(running, fake_engine, {"model": "mistral", **CHATS, **said})
        assert "chat_template_kwargs" not in plain


async def test_calls_at_once_do_not_meet(running: Gateway, fake_engine: FakeEngine) -> None:
    """Fifty, of which every second brings a word of its own."""
    bodies = [
        {
            "model": "qwen",
            **CHATS,
            "user": str(number),
            **({"chat_template_kwargs": {"foo": number}} if number % 2 else {}),
        }
        for number in range(50)
    ]

    await asyncio.gather(*(post(running, CHAT, body) for body in bodies))

    seen = [each.json() for each in await fake_engine.requests(CHAT)]
    assert len(seen) == 50
    for body in seen:
        number = int(body["user"])
        foo = {"foo": number} if number % 2 else {}
        assert body["chat_template_kwargs"] == {**foo, "enable_thinking": False, "lang": "en"}


@pytest.mark.parametrize("route", [CHAT, COMPLETIONS, RESPONSES, MESSAGES, "/v1/embeddings", "/v1/rerank"])
async def test_each_group_has_its_own_part_of_the_prefix_cache(
    running: Gateway, fake_engine: FakeEngine, route: str
) -> None:
    """By a salt that follows from the secret; none where the model shares its cache or knows none."""
    team = (await running.create_key(name="a", cache_group="team"))["key"]
    for model in ("qwen", "forced", "other"):
        await post(running, route, {"model": model, "cache_salt": "guessed"}, key=team)

    salts = [seen.json().get("cache_salt") for seen in await fake_engine.requests(route)]
    assert salts == [Salts(SECRET).of("team"), None, None]


async def test_other_engines_get_no_field_of_vllms(running: Gateway, fake_engine: FakeEngine) -> None:
    """What both understand stays."""
    body = await sent(running, fake_engine, {"model": "other", **CHATS, **UNKNOWN})

    assert body == {**CHATS, **{name: UNKNOWN[name] for name in ("top_k", "min_p", "zzz_future", "user")}}


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        *(
            (CHAT, {**CHATS, "chat_template_kwargs": value}, "chat_template_kwargs")
            for value in ([1], "x", 5, True)
        ),
        (RESPONSES, {"input": "x", "background": True}, "background"),
        (RESPONSES, {"input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
        (RESPONSES, {"input": "x", "tools": [{"type": "mcp", "server_url": "http://x"}]}, "tools[0].type"),
        (
            RESPONSES,
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x"}]}]},
            "input[0].content[0].image_url",
        ),
        (
            "/v1/embeddings",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}
                ]
            },
            "messages[0].content[0].image_url",
        ),
        ("/v1/rerank", {"query": "x", "documents": ["x"] * 257}, "documents"),
        (CHAT, {**CHATS, "stop": ["x"] * 99}, "stop"),
        (CHAT, {**CHATS, "n": 9}, "n"),
    ],
)
async def test_what_is_refused_reaches_no_engine(
    running: Gateway, fake_engine: FakeEngine, route: str, body: dict[str, Any], param: str
) -> None:
    """400 that names the field."""
    answer = await post(running, route, {"model": "qwen", **body})

    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_request", param)
    assert await fake_engine.requests() == []


async def test_messages_are_refused_in_their_own_shape(running: Gateway, fake_engine: FakeEngine) -> None:
    """An Anthropic client reads it."""
    source = {"type": "image", "source": {"type": "url", "url": "http://x"}}
    answer = await post(
        running,
        MESSAGES,
        {"model": "qwen", "max_tokens": 5, "messages": [{"role": "user", "content": [source]}]},
    )

    assert answer.status == 400
    assert "is not fetched for you: send its bytes in a source of type 'base64'" in answer.body.decode()
    assert await fake_engine.requests() == []


@pytest.mark.parametrize(
    "place", ['{"tools": [{"function": {"parameters": %s}}]}', '{"chat_template_kwargs": %s}']
)
@pytest.mark.parametrize("depth", [110, 1000])
async def test_depth_never_breaks_the_walk(
    running: Gateway, fake_engine: FakeEngine, place: str, depth: int
) -> None:
    """It passes as it is, or it is the caller's mistake."""
    deep = '{"a":' * depth + "1" + "}" * depth
    body = f'{{"model": "qwen", "messages": [], {(place % deep)[1:]}'.encode()

    answer = await post(running, CHAT, body)

    if depth > 128:
        assert (answer.status, answer.error["code"]) == (400, "invalid_json")
    else:
        assert answer.status == 200
        [seen] = await fake_engine.requests(CHAT)
        assert deep[:-1].encode() in seen.body  # a default may stand behind it in the same object
