"""Who may call: the key is found wherever clients put it, and everything else is one and the same 401."""

import json

import pytest

from gateway.routes import OF_ENGINES
from tests.callers import CALL, CHAT, ask, chat, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

MODELS = "/v1/models"
UNKNOWN = "sk-gw-abcdefghijkl-" + "x" * 43


def headers(*fields: str) -> bytes:
    """A request whose headers are written by hand, as bytes of Latin-1."""
    return (
        "GET /v1/models HTTP/1.1\r\nhost: x\r\n" + "".join(f"{field}\r\n" for field in fields) + "\r\n"
    ).encode("latin-1")


@pytest.mark.parametrize(
    "field",
    [
        "authorization: Bearer {}", "authorization: bearer {}", "AUTHORIZATION: BEARER {}",
        "Authorization: Bearer   {}", "Authorization:Bearer {}   ", "x-api-key: {}", "X-API-Key:  {} ",
    ],
)  # fmt: skip
async def test_a_key_is_found_however_it_is_written(gateway: Gateway, field: str) -> None:
    """The scheme in any case, spaces more than one, or in the header of Anthropic's clients."""
    assert (await ask(gateway, headers(field.format(gateway.key)))).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        ["authorization: Bearer {key}", "x-api-key: wrong"],
        ["authorization: Bearer wrong", "x-api-key: {key}"],
        ["x-api-key: {key}", f"authorization: Bearer {UNKNOWN}"],
        ["authorization: Basic dXNlcjpwYXNz", "x-api-key: {key}"],
        ["authorization: Bearer", "x-api-key: {key}"],
        ["authorization: Bearer {key}", "x-api-key: "],
    ],
)
async def test_of_two_headers_the_one_with_our_key_counts(gateway: Gateway, fields: list[str]) -> None:
    """Clients that fill the other one with something of their own are served all the same."""
    assert (await ask(gateway, headers(*(field.format(key=gateway.key) for field in fields)))).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        [], ["authorization: Bearer"], ["authorization: "], ["authorization: Bearer "], ["x-api-key: "],
        ["authorization: Bearer", "authorization: Bearer"],
        ["authorization: Bearer {key}", "authorization: Bearer {key}"],
        ["authorization: Bearer", "authorization: Bearer {key}"], ["x-api-key: {key}", "x-api-key: {key}"],
        ["authorization: {key}"], ["authorization: Token {key}"], ["authorization: Bearer{key}"],
        ["authorization: Basic {key}"], ["authorization: Basic !!!notbase64"], ["authorization: Digest x"],
        ["authorization: Bearer caf\xe9"], ["x-api-key: \xe2\x80\x9c{key}\xe2\x80\x9d"],
        ["authorization: Bearer \xff\xfe"], [f"authorization: Bearer {UNKNOWN}"], ["x-api-key: {key}x"],
        ["authorization: Bearer {key}, Bearer {key}"], ["cookie: api_key={key}"], ["api-key: {key}"],
        ["proxy-authorization: Bearer {key}"], ["authorization: Bearer " + "k" * 60_000],
    ],
)  # fmt: skip
async def test_everything_else_is_the_same_401(gateway: Gateway, fields: list[str]) -> None:
    """In our shape, with the challenge that HTTP wants, and never a word on what was wrong."""
    answer = await ask(gateway, headers(*(field.format(key=gateway.key) for field in fields)))
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.error == (await ask(gateway, headers())).error
    assert answer.error["code"] == "invalid_api_key"
    assert gateway.key not in answer.body.decode()


@pytest.mark.parametrize("name", ["api_key", "key", "access_token", "authorization", "x-api-key"])
async def test_a_key_in_the_query_string_opens_nothing(gateway: Gateway, name: str) -> None:
    """It would stand in every log on the way."""
    answer = await ask(gateway, request("GET", f"{MODELS}?{name}={gateway.key}"))
    assert answer.status == 401
    assert gateway.key not in gateway.log()


async def test_no_refused_call_reaches_the_engine(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """On the routes that go there, the body sent along."""
    for key in ("", "wrong", UNKNOWN, "\xe9"):
        assert (await ask(gateway, chat(key))).status == 401
    assert await fake_engine.requests() == []


async def test_a_key_in_trailers_opens_nothing(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """What follows the body is no header of the request, although the parser reports it as one."""
    content = json.dumps(CALL).encode()
    body = b"%x\r\n%b\r\n" % (len(content), content)
    head = request("POST", CHAT, [("transfer-encoding", "chunked"), ("trailer", "authorization")])
    trailer = f"authorization: Bearer {gateway.key}\r\nx-api-key: {gateway.key}\r\n\r\n".encode()
    assert (await ask(gateway, head + body + b"0\r\n" + trailer)).status == 401
    assert await fake_engine.requests() == []


async def test_the_log_says_which_kind_of_refusal_it_was(gateway: Gateway) -> None:
    """One message for the caller, the cause for the operator, joined by the request id."""
    causes = {}
    for key in ("", "short", UNKNOWN):
        line = await gateway.request_line((await ask(gateway, chat(key))).headers["x-request-id"])
        assert (line["status"], line["reason"], line["key"]) == (401, "invalid_api_key", None)
        causes[key] = line["cause"]
    assert causes == {"": "no key", "short": "not of the form of a key", UNKNOWN: "unknown key"}


async def test_a_revoked_key_opens_nothing_from_the_next_call_on(gateway: Gateway) -> None:
    """Revoked through the admin API of this very process, it is known to be so at once."""
    revoked = await gateway.create_key(name="revoked")
    await gateway.admin("DELETE", f"/admin/keys/{revoked['id']}")
    answer = await ask(gateway, chat(revoked["key"]))
    assert answer.error["code"] == "invalid_api_key"
    assert "revoked" in (await gateway.request_line(answer.headers["x-request-id"]))["cause"]


@pytest.mark.parametrize("path", [*OF_ENGINES, "/v1/models", "/v1/models/fake-model"])
async def test_every_route_wants_a_key(gateway: Gateway, fake_engine: FakeEngine, path: str) -> None:
    """Also those that an engine serves to anybody; it hears of none of these calls."""
    method, body = ("GET", None) if path.startswith("/v1/models") else ("POST", b'{"model": "fake-model"}')
    assert (await ask(gateway, request(method, path, body=body))).status == 401
    assert await fake_engine.requests() == []
