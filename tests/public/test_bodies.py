"""Bodies on the wire: read once up to a bound, refused early and readably, sent on as they were parsed."""

import asyncio
import json
from contextlib import AsyncExitStack

import httpx
import pytest

from gateway.routes import ROUTES, Route
from tests.callers import CALL, CHAT, Caller, ask, chat, request, send_all_then_read
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for

DEEP = 1000
LIMIT_BYTES = 33_554_432
PIECE = b" " * 65_536
BAD = {
    "empty": b"", "space": b" ", "array": b"[1]", "string": b'"x"', "number": b"5", "null": b"null",
    "true": b"true",
    "cut": b'{"model":', "two": b'{"a":1}{"b":2}', "bom": b'\xef\xbb\xbf{"model":"m"}',
    "bytes": b'{"model":"m\xff"}',
    "surrogate": b'{"a":"\\ud800"}', "nan": b'{"temperature":NaN}', "infinite": b'{"top_p":1e400}',
    "minus infinity": b'{"logit_bias":{"1":-Infinity}}', "65 bits": b'{"seed":36893488147419103232}',
    "nested": b"[" * 20_000 + b"]" * 20_000, "nested inside": b'{"x":' + b"[" * 200 + b"]" * 200 + b"}",
    "deep": b'{"metadata":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "multipart": b"--b\r\n\r\nx\r\n--b--\r\n",
    "utf-16": '{"model":"m"}'.encode("utf-16"), "comment": b'{"model":"m"} // x', "key": b"{model:1}",
}  # fmt: skip


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
@pytest.mark.parametrize("name", BAD)
async def test_what_is_not_one_json_object_is_a_400(
    gateway: Gateway, fake_engine: FakeEngine, name: str, path: str
) -> None:
    """In our shape, with none of the raw bytes in it; the engine is not asked, and the connection goes on."""
    async with Caller(gateway) as caller:
        await caller.send(request("POST", path, [("x-api-key", gateway.key)], BAD[name]))
        answer = await caller.answer()
        await caller.send(chat(gateway.key))
        assert (await caller.answer()).status == 200
    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"
    assert answer.error["code"] == "invalid_json"
    assert len(await fake_engine.requests()) == 1


@pytest.mark.parametrize(
    ("name", "param"),
    [("nan", "temperature"), ("infinite", "top_p"), ("minus infinity", "logit_bias.1"), ("65 bits", "seed")],
)
async def test_a_number_that_is_none_is_named(gateway: Gateway, name: str, param: str) -> None:
    """`param` says where it stands."""
    assert (await ask(gateway, chat(gateway.key, BAD[name]))).error["param"] == param


async def test_a_byte_order_mark_is_named(gateway: Gateway) -> None:
    """Windows tools write one, and nobody sees it."""
    assert "byte order mark" in (await ask(gateway, chat(gateway.key, BAD["bom"]))).error["message"]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200), ("application/json; charset=utf-8", 200),
        ('application/json;charset="UTF-8"', 200),
        ("APPLICATION/JSON", 200), ("application/vnd.api+json", 200), ("", 200),
        ("application/json;charset=bogus", 415), ("application/json; charset=utf-16", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=nope", 415),
        ("json", 415),
    ],
)  # fmt: skip
async def test_json_may_be_named_in_many_ways_and_nothing_else_is_taken(
    gateway: Gateway, fake_engine: FakeEngine, content_type: str, status: int
) -> None:
    """What passes is sent on as application/json, whatever the caller called it."""
    answer = await ask(gateway, chat(gateway.key, fields=[("content-type", content_type)]))
    assert answer.status == status
    if status == 200:
        assert (await fake_engine.requests())[0].header("content-type") == "application/json"
    else:
        assert answer.error["code"] == "unsupported_media_type"
        assert content_type in answer.error["message"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.served == "engine"])
async def test_no_route_lets_a_bad_body_through(
    gateway: Gateway, fake_engine: FakeEngine, route: Route
) -> None:
    """400 on each, or 415 where a form is wanted; in the shape of the route."""
    for name in ("empty", "array", "null", "bytes", "nan", "nested"):
        answer = await ask(gateway, request("POST", route.template, [("x-api-key", gateway.key)], BAD[name]))
        assert answer.status == (415 if route.body == "form" else 400), name
        assert json.loads(answer.body)["error"]["type"] == "invalid_request_error", name
    assert await fake_engine.requests() == []


async def test_no_content_type_is_taken_as_json(gateway: Gateway) -> None:
    """As the engine itself would not, so it is named to it."""
    content = json.dumps(CALL).encode()
    fields = [("x-api-key", gateway.key), ("content-length", str(len(content)))]
    assert (await ask(gateway, request("POST", CHAT, fields) + content)).status == 200


async def test_what_is_sent_is_what_was_parsed(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Order and numbers keep their values, unknown fields pass, of duplicate names the last counts."""
    content = (
        b'{ "zzz_future" :{"a":[1, 1.0,-0.0, 18446744073709551615,-9223372036854775808,1e5]}, "model":"x",'
        b'"messages":[{"role":"user","content":"\\u00e9\\ud83d\\ude00"}], "temperature":0.10, "top_k":1,'
        b'"model":"fake-model", "seed":null, "guided_json":{"b":1,"a":2} }'
    )
    assert (await ask(gateway, chat(gateway.key, content))).status == 200
    [seen] = await fake_engine.requests()
    assert seen.body.count(b'"model"') == 1
    sent = seen.json()
    assert sent.pop("cache_salt")  # the gateway's own
    assert list(sent.items()) == list(json.loads(content).items())
    values = sent["zzz_future"]["a"]
    assert [type(value) for value in values] == [int, float, float, int, int, float]
    assert seen.header("content-length") == str(len(seen.body))


async def test_a_body_in_many_small_pieces_is_one_body(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Chunked, byte by byte, with extensions and trailers: the engine gets it with a length."""
    content = json.dumps(CALL).encode()
    async with Caller(gateway) as caller:
        await caller.send(
            request("POST", CHAT, [("x-api-key", gateway.key), ("transfer-encoding", "chunked")])
        )
        for byte in content:
            await caller.send(b"1;name=value\r\n%c\r\n" % byte)
        await caller.send(b"0\r\nx-trailer: 1\r\n\r\n")
        assert (await caller.answer()).status == 200
    [seen] = await fake_engine.requests()
    assert seen.json()["messages"] == CALL["messages"]
    assert seen.header("transfer-encoding") is None
    assert seen.header("x-trailer") is None


@pytest.mark.parametrize(
    ("key", "fields", "status"),
    [
        ("", [("content-length", str(LIMIT_BYTES))], 401),
        (None, [("content-length", str(LIMIT_BYTES + 1))], 413),
        (None, [("content-length", str(LIMIT_BYTES)), ("content-type", "text/plain")], 415),
        (None, [("content-length", str(LIMIT_BYTES)), ("content-encoding", "br")], 415),
    ],
)
async def test_an_early_refusal_is_read_by_who_is_still_sending(
    gateway: Gateway, fake_engine: FakeEngine, key: str | None, fields: list[tuple[str, str]], status: int
) -> None:
    """It comes before the body is read, whole, not as a reset; then the connection ends."""
    head = request("POST", CHAT, [("x-api-key", gateway.key if key is None else key), *fields])
    async with Caller(gateway) as caller:
        await caller.send(head)
        answer = await caller.answer()
    late = await send_all_then_read(gateway, head, PIECE, LIMIT_BYTES // len(PIECE))
    assert answer.status == status
    assert answer.headers["connection"] == "close"
    assert late.startswith(b"HTTP/1.1 %d " % status)
    assert late.endswith(answer.body)
    assert await fake_engine.requests() == []


async def test_a_body_without_length_is_counted_and_stopped_at_the_limit(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """Endless white space before the JSON: 413 that is read, and no more held than the limit."""
    before = await gateway.metric("process_resident_memory_bytes")
    head = request("POST", CHAT, [("x-api-key", gateway.key), ("transfer-encoding", "chunked")])
    chunk = b"10000\r\n" + PIECE + b"\r\n"
    answer = await send_all_then_read(gateway, head, chunk, 4 * LIMIT_BYTES // len(PIECE))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"request_too_large"' in answer
    assert b"%d bytes" % LIMIT_BYTES in answer
    assert await gateway.metric("gateway_requests_total", route=CHAT, reason="request_too_large") >= 1
    assert await gateway.metric("process_resident_memory_bytes") - before < 2 * LIMIT_BYTES
    assert await fake_engine.requests() == []


async def test_a_client_library_that_sends_too_much_reads_the_413(
    gateway: Gateway, http: httpx.AsyncClient
) -> None:
    """And tells its user what happened, where a reset would be retried for ever."""
    answer = await http.post(gateway.url + CHAT, headers={"x-api-key": gateway.key}, content=PIECE * 520)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"


async def test_a_body_of_20_mb_passes(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """An image in base64 is no reason to refuse; the engine gets every byte."""
    image = "data:image/png;base64," + "A" * 20_000_000
    content = [{"type": "image_url", "image_url": {"url": image}}]
    await fake_engine.script([{"reply": "digest"}])
    answer = await ask(gateway, chat(gateway.key, messages=[{"role": "user", "content": content}]))
    assert answer.status == 200
    assert json.loads(answer.body)["bytes"] > 20_000_000


async def test_large_bodies_leave_others_their_turn(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Three of 30 MB at once are all served, and small calls are answered before they are."""
    await fake_engine.script(scripts.gated("large", scripts.chat()), times=3)
    large = chat(gateway.key, padding="A" * 30_000_000)
    calls = [asyncio.create_task(ask(gateway, large)) for _ in range(3)]
    await fake_engine.wait(running=3)
    assert (await ask(gateway, chat(gateway.key))).status == 200
    await fake_engine.open_gate("large", 3)
    assert {(await call).status for call in calls} == {200}


@pytest.mark.parametrize("size_bytes", [10_000, 100_000, 1_000_000, 9_000_000])
async def test_who_leaves_after_a_large_body_has_left(
    gateway: Gateway, fake_engine: FakeEngine, size_bytes: int
) -> None:
    """The end of a connection is seen however its last bytes came, so the engine's work ends."""
    await fake_engine.script([{"hang": True}])
    async with Caller(gateway) as caller:
        await caller.send(chat(gateway.key, padding="x" * size_bytes))
        await fake_engine.wait(running=1)
    await fake_engine.wait(aborted=1, running=0)


@pytest.mark.parametrize(
    "refused", [[("content-length", str(LIMIT_BYTES + 1))], [("content-encoding", "br")]]
)
async def test_no_100_continue_for_what_is_refused(gateway: Gateway, refused: list[tuple[str, str]]) -> None:
    """A wrong key, a large body, an unknown encoding: the answer comes first, and nothing has to be sent."""
    expect = [("expect", "100-continue"), ("transfer-encoding", "chunked")]
    for key, more in (("wrong", expect), (gateway.key, [("expect", "100-continue"), *refused])):
        async with Caller(gateway) as caller:
            await caller.send(request("POST", CHAT, [("x-api-key", key), *more]))
            answer = await caller.answer()
        assert answer.status in (401, 413, 415)
        assert answer.interim == 0


async def test_exactly_one_100_continue_for_a_good_call(gateway: Gateway) -> None:
    """Before the body is sent; then the answer."""
    content = json.dumps(CALL).encode()
    fields = [("x-api-key", gateway.key), ("expect", "100-Continue"), ("content-length", str(len(content)))]
    async with Caller(gateway) as caller:
        await caller.send(request("POST", CHAT, fields))
        assert await caller.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await caller.send(content)
        answer = await caller.answer()
    assert (answer.status, answer.interim) == (200, 0)


async def test_bodies_held_at_once_have_a_bound_and_give_it_back(
    narrow: Gateway, fake_engine: FakeEngine
) -> None:
    """While two large calls run the third is 503 queue_full; when they have ended it passes."""
    large = chat(narrow.key, json.dumps({**CALL, "padding": "x" * 900_000}).encode())
    await fake_engine.script(scripts.gated("answer", scripts.chat()), times=2)
    held = [asyncio.create_task(ask(narrow, large)) for _ in range(2)]
    await fake_engine.wait(running=2)
    answer = await ask(narrow, large)
    assert answer.status == 503
    assert answer.error["code"] == "queue_full"
    assert answer.headers["retry-after"] == "5"
    assert (await ask(narrow, chat(narrow.key))).status == 200
    await fake_engine.open_gate("answer", 2)
    assert {(await call).status for call in held} == {200}
    assert (await ask(narrow, large)).status == 200


async def test_a_stream_that_has_begun_holds_its_body_no_more(
    narrow: Gateway, fake_engine: FakeEngine
) -> None:
    """Long answers to long prompts do not keep others out: nothing is sent again once the engine answers."""
    large = chat(narrow.key, json.dumps({**CALL, "stream": True, "padding": "x" * 900_000}).encode())
    await fake_engine.script(scripts.stream(2, gate="more"))
    async with AsyncExitStack() as stack:
        for _ in range(4):
            caller = await stack.enter_async_context(Caller(narrow))
            await caller.send(large)
            assert (await caller.head())[0] == 200


async def test_what_refused_and_departed_bodies_held_is_given_back(
    narrow: Gateway, fake_engine: FakeEngine
) -> None:
    """Half sent and left, too large, no JSON: a hundred of each take nothing from the next."""
    large = chat(narrow.key, json.dumps({**CALL, "padding": "x" * 900_000}).encode())

    async def leave() -> None:
        async with Caller(narrow) as caller:
            await caller.send(large[:-100_000])

    for _ in range(25):
        await asyncio.gather(leave(), ask(narrow, chat(narrow.key, b"{" + b" " * 900_000)))

    async def passes() -> bool:
        return (await ask(narrow, large)).status == 200

    await wait_for(passes)
    await fake_engine.wait(running=0)
