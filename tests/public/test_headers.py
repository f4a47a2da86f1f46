"""Headers: what callers get, and that none of what they send reaches the engine."""

import json
import re

import httpx
import pytest

from tests.callers import CALL, CHAT, Caller, ask, chat, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

OWN_ID = re.compile(r"req_[0-9a-f]{24}")
SENT_BY_CALLERS = {
    "cookie": "session=1", "x-request-id": "mine-1", "x-client-request-id": "mine-2",
    "forwarded": "for=1.2.3.4",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b",
    "via": "1.1 x",
    "x-vllm-priority": "-100", "priority": "u=0", "x-session-id": "s", "x-forwarded-for": "1.2.3.4",
    "te": "trailers",
    "x-forwarded-host": "evil.example", "openai-organization": "org", "proxy-authorization": "Bearer x",
    "api-key": "secret-of-the-caller", "x-data-parallel-rank": "0", "accept-encoding": "gzip, br",
    "user-agent": "me",
    "x-stainless-lang": "python", "origin": "https://evil.example", "connection": "keep-alive, x-hop",
    "x-hop": "1",
}  # fmt: skip
ALLOWED = {
    "host",
    "content-type",
    "content-length",
    "accept",
    "accept-encoding",
    "authorization",
    "x-request-id",
}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_engine_sees_none_of_a_callers_headers(
    gateway: Gateway, fake_engine: FakeEngine, *, stream: bool
) -> None:
    """An allow-list, its values ours: the operator's key, our request id, the engine's own host."""
    answer = await ask(gateway, chat(gateway.key, fields=list(SENT_BY_CALLERS.items()), stream=stream))
    assert answer.status == 200
    [seen] = await fake_engine.requests()
    assert {name.lower() for name, _ in seen.headers} == ALLOWED
    assert seen.header("authorization") == "Bearer the-engines-own-key"
    assert seen.header("host") == f"127.0.0.1:{fake_engine.process.port}"
    assert seen.header("accept-encoding") == "identity"
    assert seen.header("x-request-id") == answer.headers["x-request-id"]
    values = {value for _, value in seen.headers}
    assert values.isdisjoint(SENT_BY_CALLERS.values())
    assert not any(gateway.key in value for value in values)


@pytest.mark.parametrize(
    "data",
    [
        request("GET", "/healthz"), request("GET", "/nothing"), request("GET", "/v1/models"), chat("wrong"),
        request("DELETE", CHAT), b"\x16\x03\x01\r\n\r\n",
        request("GET", "/healthz", [(f"x-{number}", "") for number in range(101)]),
    ],
    ids=["200", "404", "401", "401 with body", "405", "400", "431"],
)  # fmt: skip
async def test_every_answer_has_a_request_id_of_its_own(gateway: Gateway, data: bytes) -> None:
    """Also the refusals that come before anything was parsed."""
    first, second = await ask(gateway, data), await ask(gateway, data)
    assert OWN_ID.fullmatch(first.headers["x-request-id"])
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert first.headers["content-type"] == "application/json"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_says_how_long_it_took_and_nothing_of_the_server(
    gateway: Gateway, *, stream: bool
) -> None:
    """`openai-processing-ms` is a whole number; no `server`, nothing of the engine's connection."""
    answer = await ask(gateway, chat(gateway.key, stream=stream))
    assert 0 <= int(answer.headers["openai-processing-ms"]) < 5000
    assert {"server", "x-powered-by", "keep-alive"}.isdisjoint(answer.headers)


@pytest.mark.parametrize(
    ("sent", "logged"),
    [
        (["mine-1"], "mine-1"), (["A.b_c-9" * 18], "A.b_c-9" * 18), (["x" * 129], None), (["a b"], None),
        ([""], None),
        (["a%0d%0aX: y"], None), (["\xe9"], None), (['{"json":1}'], None), (["a\tb"], None),
        (["a", "b"], None),
        (["x" * 60_000], None), ([], None),
    ],
)  # fmt: skip
async def test_a_callers_own_id_stands_beside_ours_in_the_log_if_it_is_well_formed(
    gateway: Gateway, sent: list[str], logged: str | None
) -> None:
    """It is never taken over: the answer carries ours alone, and each line of the log is one JSON object."""
    answer = await ask(gateway, request("GET", "/healthz", [("x-request-id", value) for value in sent]))
    assert OWN_ID.fullmatch(answer.headers["x-request-id"])
    line = await gateway.request_line(answer.headers["x-request-id"])
    assert line["caller_request_id"] == logged
    assert all(json.loads(text) for text in gateway.log().splitlines())


@pytest.mark.parametrize(
    ("fields", "logged"),
    [
        ([("x-client-request-id", "mine-2")], "mine-2"),
        ([("x-client-request-id", "mine-2"), ("x-request-id", "mine-1")], "mine-1"),
        ([("x-client-request-id", "a b")], None),
    ],
)
async def test_the_id_of_openais_header_stands_in_the_log_too(
    gateway: Gateway, fields: list[tuple[str, str]], logged: str | None
) -> None:
    """Its libraries name their requests there; of two names the plainer one counts."""
    answer = await ask(gateway, request("GET", "/healthz", fields))
    line = await gateway.request_line(answer.headers["x-request-id"])
    assert line["caller_request_id"] == logged


async def test_the_sdk_finds_the_request_id_of_an_error(gateway: Gateway, http: httpx.AsyncClient) -> None:
    """Where it looks for it, in every answer's head."""
    answer = await http.post(
        gateway.url + CHAT, headers={"x-api-key": gateway.key}, json={**CALL, "model": "nope"}
    )
    assert OWN_ID.fullmatch(answer.headers["x-request-id"])


async def test_the_log_holds_the_address_that_a_trusted_proxy_names(gateway: Gateway) -> None:
    """The peer here is 127.0.0.1, trusted by default; what the caller wrote itself stands further left."""
    for chain, address in (
        ([], "127.0.0.1"),
        (["203.0.113.9"], "203.0.113.9"),
        (["10.9.9.9, 203.0.113.9"], "203.0.113.9"),
        (["10.9.9.9", "203.0.113.9, 127.0.0.1"], "203.0.113.9"),
        (["2001:db8::7"], "2001:db8::7"),
        (["nonsense"], "127.0.0.1"),
    ):
        fields = [("x-forwarded-for", value) for value in chain]
        answer = await ask(gateway, request("GET", "/healthz", fields))
        assert (await gateway.request_line(answer.headers["x-request-id"]))["address"] == address


async def test_a_refused_connection_is_logged_with_its_id(gateway: Gateway) -> None:
    """What never became a request is no request line, but the operator can find it."""
    answer = await ask(gateway, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    [line] = [e for e in gateway.events("refused") if e["request_id"] == answer.headers["x-request-id"]]
    assert line["address"] == "127.0.0.1"
    assert line["cause"]


async def test_an_answer_to_http_1_0_ends_with_its_connection(gateway: Gateway) -> None:
    """Health checks of load balancers still speak it."""
    async with Caller(gateway) as caller:
        await caller.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = await caller.answer()
        assert await caller.rest() == b""
    assert answer.status == 200
    assert "transfer-encoding" not in answer.headers
