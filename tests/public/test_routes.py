"""The public port serves an allow-list: nothing else is there, and no engine hears of the attempt."""

import pytest

from gateway.routes import ROUTES
from tests.callers import CHAT, Answer, ask, chat, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

OF_OPS = ["/metrics", "/readyz", "/admin", "/admin/keys", "/admin/reload"]
OF_FRAMEWORKS = ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"]
OF_THE_ENGINE = [
    "/version",
    "/ping",
    "/load",
    "/health",
    "/invocations",
    "/server_info",
    "/v1/load_lora_adapter",
]
DISGUISED = [
    "//metrics", "/metrics/", "/./metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics",
    "/%6detrics",
    "/v1/models/../../metrics", "/metrics%00", "/METRICS", "/metrics?x=/v1/models",
    "/v1/models/..%2f..%2fmetrics",
    "http://127.0.0.1:8081/metrics", "http://gateway.test//metrics",
]  # fmt: skip


async def assert_unknown(gateway: Gateway, target: str, engine: FakeEngine) -> Answer:
    """With a good key, so that it is not the key that keeps it out."""
    answer = await ask(gateway, request("GET", target, [("x-api-key", gateway.key)]))
    assert answer.status == 404, (target, answer)
    assert answer.error["code"] in ("not_found", "model_not_found"), target
    assert "location" not in answer.headers
    assert await engine.requests() == []
    return answer


@pytest.mark.parametrize("target", [*OF_OPS, *OF_FRAMEWORKS, *OF_THE_ENGINE, *DISGUISED, "/", "/v1", "/v1/"])
async def test_what_is_not_listed_is_not_there(
    gateway: Gateway, fake_engine: FakeEngine, target: str
) -> None:
    """However it is written: 404 in our shape, no redirect, and the engine is not asked."""
    await assert_unknown(gateway, target, fake_engine)


LONG = "x" * 5000


@pytest.mark.parametrize(
    "path", [f"/{LONG}", f"/models/{LONG}", f"/v1/models/%0a{LONG}", f"/v1/models/{LONG}"]
)
async def test_a_long_path_is_cut_in_the_message(
    gateway: Gateway, fake_engine: FakeEngine, path: str
) -> None:
    """A caller's value is worth 100 characters."""
    assert LONG[:101] not in (await assert_unknown(gateway, path, fake_engine)).error["message"]


@pytest.mark.parametrize("path", ["/v1/v1/chat/completions", "/v1/v1/models"])
async def test_v1_twice_is_told_where_it_belongs(gateway: Gateway, path: str) -> None:
    """Once in the base URL, or not there at all: clients differ in whether they add it."""
    message = (await ask(gateway, request("POST", path, body=b"{}"))).error["message"]
    assert message == (
        "The path begins with /v1 twice: let the base URL end in /v1 once; "
        "if your client appends /v1 by itself, leave it out there."
    )


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/v1/files", "/v1/files"),
        ("/v1/files/file-1/content", "/v1/files"),
        ("/v1/batches/", "/v1/batches"),
        ("/batches", "/v1/batches"),
        ("/v1/images/generations", "/v1/images"),
        ("/v1/audio/speech", "/v1/audio/speech"),
        ("/v1/fine_tuning/jobs", "/v1/fine_tuning"),
    ],
)
async def test_a_known_route_that_is_not_served_is_told_so(
    gateway: Gateway, fake_engine: FakeEngine, path: str, named: str
) -> None:
    """The base URL is right then, and nobody should look for a mistake in it; what is served is named."""
    message = (await assert_unknown(gateway, path, fake_engine)).error["message"]
    assert message.startswith(f"This gateway does not serve {named}; it serves /v1/chat/completions, ")
    assert all(route.template in message for route in ROUTES if route.served == "engine")


async def test_a_response_is_not_to_be_had_again(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Nothing is stored, and the message says so."""
    answer = await assert_unknown(gateway, "/v1/responses/resp_1", fake_engine)
    assert "not stored" in answer.error["message"]


@pytest.mark.parametrize("path", ["/v1/responses2", "/v1/files2", "/v1/messages2", "/v1/embed"])
async def test_a_route_that_only_begins_like_a_known_one_is_an_unknown_one(
    gateway: Gateway, fake_engine: FakeEngine, path: str
) -> None:
    """Nothing is promised for it."""
    answer = await assert_unknown(gateway, path, fake_engine)
    assert answer.error["message"] == (
        f"There is no route '{path}'. The base URL of an OpenAI client ends in /v1."
    )


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/tokenize", "/tokenize"), ("/v1/detokenize/", "/detokenize"), ("/v1/classify", "/classify"),
        ("/v1/pooling", "/pooling"), ("/v2/rerank", "/v1/rerank"), ("//v1/chat/completions", CHAT),
        ("/v1//chat/completions", CHAT), ("/api/v1/chat/completions", CHAT),
        ("/openai/deployments/x/chat/completions", CHAT), ("/api/v1/messages/count_tokens",
         "/v1/messages/count_tokens"),
    ],
)  # fmt: skip
async def test_a_path_that_ends_like_a_route_is_told_which(
    gateway: Gateway, fake_engine: FakeEngine, path: str, meant: str
) -> None:
    """With too much before it, too many slashes, or /v1 where none belongs."""
    answer = await assert_unknown(gateway, path, fake_engine)
    assert answer.error["message"].endswith(f"Did you mean {meant}?")


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions", "/completions", "/models", "/models/fake-model", "/rerank", "/score",
        "/messages/count_tokens", "/responses", "/audio/transcriptions",
    ],
)  # fmt: skip
async def test_v1_left_out_is_told_to_set_the_base_url_with_it(gateway: Gateway, path: str) -> None:
    """The message shows the path as it should be."""
    message = (await ask(gateway, request("POST", path, body=b"{}"))).error["message"]
    assert f"…/v1{path}" in message


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", CHAT, "POST"), ("DELETE", CHAT, "POST"), ("HEAD", CHAT, "POST"), ("OPTIONS", CHAT, "POST"),
        ("PUT", "/v1/completions", "POST"), ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/x", "GET, HEAD"), ("PATCH", "/healthz", "GET, HEAD"),
        ("TRACE", "/v1/models", "GET, HEAD"), ("GET", "/v1/responses", "POST"), ("GET", "/tokenize/", "POST"),
    ],
)  # fmt: skip
async def test_another_method_is_405_and_names_the_right_ones(
    gateway: Gateway, fake_engine: FakeEngine, method: str, path: str, allow: str
) -> None:
    """In our shape, whether or not a key was sent; a HEAD gets the head alone."""
    answer = await ask(gateway, request(method, path), to_head=method == "HEAD")
    assert answer.status == 405
    assert answer.headers["allow"] == allow
    if method != "HEAD":
        assert answer.error["code"] == "method_not_allowed"
        assert allow in answer.error["message"]
    assert await fake_engine.requests() == []


@pytest.mark.parametrize(
    "target", [CHAT + "/", CHAT + "?api-version=1", CHAT + "/?a=b", "http://evil.example" + CHAT]
)
async def test_a_trailing_slash_a_query_or_a_host_make_no_other_route(
    gateway: Gateway, fake_engine: FakeEngine, target: str
) -> None:
    """Answered at once and never by a redirect; the engine sees the plain path and its own host."""
    data = chat(gateway.key).replace(CHAT.encode(), target.encode(), 1)
    answer = await ask(gateway, data.replace(b"host: gateway.test", b"host: evil.example"))
    assert answer.status == 200
    assert "location" not in answer.headers
    assert b"evil.example" not in answer.body
    [seen] = await fake_engine.requests()
    assert seen.target == CHAT
    assert seen.header("host") == f"127.0.0.1:{fake_engine.process.port}"


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/models/", "/v1/models/fake-model", "/healthz", "/healthz/"]
)
async def test_head_works_where_get_does(gateway: Gateway, path: str) -> None:
    """The same status and headers, no body: the next answer on the connection is not shifted."""
    fields = [("x-api-key", gateway.key)]
    whole = await ask(gateway, request("GET", path, fields))
    head = await ask(gateway, request("HEAD", path, fields), to_head=True)
    assert whole.status == head.status == 200
    assert head.headers["content-length"] == whole.headers["content-length"] == str(len(whole.body))


async def test_health_needs_no_key_and_models_do(gateway: Gateway) -> None:
    """`/healthz` is for load balancers; who has no key learns no model's name."""
    assert (await ask(gateway, request("GET", "/healthz"))).body == b'{"status":"ok"}'
    assert (await ask(gateway, request("GET", "/v1/models"))).error["code"] == "invalid_api_key"
    assert (await ask(gateway, request("GET", "/v1/models/fake-model"))).status == 401


async def test_no_message_repeats_a_long_path(gateway: Gateway) -> None:
    """A caller's value is cut to 100 characters."""
    answer = await ask(gateway, request("GET", "/" + "x" * 50_000))
    assert answer.status == 404
    assert len(answer.body) < 400
