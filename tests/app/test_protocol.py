"""What a connection may send before anybody is known: bounds, and an answer that can be read at each."""

import asyncio
import contextlib
import time

import pytest

from tests.callers import CHAT, Caller, ask, chat, request, send_all_then_read
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway

KIB = 1024
HEALTH = request("GET", "/healthz")
CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": b"BREW /v1/models HTTP/1.1\r\n\r\n",
    "CONNECT": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nhost: x\n\n",
    "NUL": b"GET /v1/\x00 HTTP/1.1\r\n\r\n",
    "a space before the colon": b"GET /healthz HTTP/1.1\r\nhost : x\r\n\r\n",
    "a folded header": b"GET /healthz HTTP/1.1\r\nx-a: b\r\n c\r\n\r\n",
    "a target without a path": b"GET http://evil.example HTTP/1.1\r\n\r\n",
    "a length that is none": b"POST / HTTP/1.1\r\ncontent-length: 5x\r\n\r\nhello",
    "a signed length": b"POST / HTTP/1.1\r\ncontent-length: +5\r\n\r\nhello",
    "an endless length": b"POST / HTTP/1.1\r\ncontent-length: " + b"9" * 30 + b"\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "a list of lengths": b"POST / HTTP/1.1\r\ncontent-length: 5, 5\r\n\r\nhello",
    "length and chunks": CHUNKED + b"content-length: 5\r\n\r\n0\r\n\r\n",
    "chunks and length": b"POST / HTTP/1.1\r\ncontent-length: 5\r\n"
    + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding nobody knows": b"POST / HTTP/1.1\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked not last": b"POST / HTTP/1.1\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a chunk's size that is none": CHUNKED + b"\r\nzz\r\n",
    "a chunk's size that is endless": CHUNKED + b"\r\n" + b"f" * 20 + b"\r\n",
    "a chunk that is longer than it says": CHUNKED + b"\r\n1\r\nabc\r\n0\r\n\r\n",
}
TOO_LARGE = {
    "one header": request("GET", "/healthz", [("x-a", "a" * 70 * KIB)]),
    "one name": request("GET", "/healthz", [("x" * 70 * KIB, "a")]),
    "a target": request("GET", "/" + "a" * 70 * KIB),
    "many headers": request("GET", "/healthz", [(f"x-{number}", "") for number in range(101)]),
    "a thousand headers": request("GET", "/healthz", [(f"x-{number}", "a" * 100) for number in range(1000)]),
    "before a body": chat("wrong", fields=[("x-a", "a" * 70 * KIB)]),
}


async def refused(
    gateway: Gateway, name: str, data: bytes, piece_bytes: int
) -> tuple[str, int, str, str | None]:
    """What a connection answers to these bytes before it ends, with no word more."""
    async with Caller(gateway) as caller:
        for start in range(0, len(data), piece_bytes):
            await caller.send(data[start : start + piece_bytes])
        answer = await caller.answer()
        assert await caller.rest() == b"", name
    return name, answer.status, answer.error["code"], answer.headers.get("connection")


async def test_what_is_no_clean_http_is_one_400_and_the_end(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """In our shape. Whatever comes behind it is not taken for a request: two servers may not differ on it."""
    cases = (refused(gateway, name, data + HEALTH, 1_000_000) for name, data in NO_HTTP.items())
    assert await asyncio.gather(*cases) == [(name, 400, "invalid_request", "close") for name in NO_HTTP]
    assert await fake_engine.requests() == []


async def test_a_head_over_its_bounds_is_431_and_the_end(gateway: Gateway) -> None:
    """At once or in small pieces."""
    expected = [(name, 431, "headers_too_large", "close") for name in TOO_LARGE]
    cases = [
        refused(gateway, name, data, size) for size in (1_000_000, 10_000) for name, data in TOO_LARGE.items()
    ]
    assert await asyncio.gather(*cases) == expected * 2


async def test_an_endless_head_is_431_that_can_be_read(gateway: Gateway) -> None:
    """The answer is not reset away by what still comes."""
    head = b"GET /healthz HTTP/1.1\r\nx-endless: "
    assert b" 431 " in await send_all_then_read(gateway, head, b"a" * 100_000, 10)


async def test_a_head_within_its_bounds_passes(gateway: Gateway) -> None:
    """A hundred headers, or one of 60 KiB, or 50 KiB of target; with a body behind it, too."""
    hundred = [("x-api-key", gateway.key), *[(f"x-{number}", "") for number in range(98)]]
    for data in (
        request("GET", "/v1/models", hundred),
        request("GET", "/healthz", [("x-a", "a" * 60 * KIB)]),
        request("GET", "/healthz?" + "a" * 50 * KIB),
        chat(gateway.key, fields=[("x-a", "a" * 50 * KIB)], padding="x" * 50 * KIB),
    ):
        assert (await ask(gateway, data)).status == 200


async def closed_at(caller: Caller, begin: bytes, drip: bytes = b"") -> float:
    """When the gateway has waited enough for the rest of a head, of which a bit more comes each second."""
    await caller.send(begin)
    closed = asyncio.create_task(caller.rest())
    while not closed.done():
        await asyncio.wait({closed}, timeout=1)
        if drip and not closed.done():
            with contextlib.suppress(ConnectionError):  # it may just have ended
                await caller.send(drip)
    assert await closed == b""
    return time.monotonic()


async def test_a_head_that_is_not_whole_after_ten_seconds_ends_the_connection(gateway: Gateway) -> None:
    """Nothing at all, a half, or a bit each second: without an answer, and no sooner. (It takes as long.)"""
    started = time.monotonic()
    async with (
        Caller(gateway) as silent,
        Caller(gateway) as half,
        Caller(gateway) as slow,
        Caller(gateway) as second,
    ):
        await second.send(HEALTH)
        assert (await second.answer()).status == 200
        ended = await asyncio.gather(
            closed_at(silent, b""),
            closed_at(half, HEALTH[:-2]),
            closed_at(slow, b"GET /healthz HTTP/1.1\r\n", b"x: y\r\n"),
            closed_at(second, b"GET "),
        )
    assert min(ended) - started > 9.5


async def test_a_connection_serves_many_calls_and_ends_when_asked_to(gateway: Gateway) -> None:
    """Kept alive through answers and refusals of all kinds."""
    async with Caller(gateway) as caller:
        for _ in range(5):
            for data, status in (
                (chat(gateway.key), 200), (chat(gateway.key, stream=True), 200), (HEALTH, 200),
                (chat(gateway.key, b"[]"), 400), (request("GET", "/nothing"), 404),
                (request("PUT", CHAT), 405),
            ):  # fmt: skip
                await caller.send(data)
                assert (await caller.answer()).status == status
        await caller.send(request("GET", "/healthz", [("connection", "close")]))
        assert (await caller.answer()).headers["connection"] == "close"
        assert await caller.rest() == b""


async def test_a_body_that_a_route_does_not_read_is_no_request(gateway: Gateway) -> None:
    """The next request begins where the body has ended, also if that came after the answer."""
    inner = request("GET", "/metrics")
    async with Caller(gateway) as caller:
        await caller.send(request("GET", "/healthz", body=inner) + HEALTH)
        assert [(await caller.answer()).status for _ in range(2)] == [200, 200]
        await caller.send(request("GET", "/healthz", [("content-length", str(len(inner)))]))
        assert (await caller.answer()).status == 200
        await caller.send(inner + HEALTH)
        assert (await caller.answer()).status == 200


async def test_the_rest_of_a_refused_body_is_no_request(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """After an early refusal the connection ends, whatever the body looks like."""
    inner = chat(gateway.key)
    async with Caller(gateway) as caller:
        await caller.send(request("POST", CHAT, [("x-api-key", "wrong"), ("content-length", "9999")]) + inner)
        assert (await caller.answer()).status == 401
        assert await caller.rest() == b""
    assert await fake_engine.requests() == []


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
async def test_an_offered_upgrade_is_passed_over_and_the_body_read(
    gateway: Gateway, fake_engine: FakeEngine, protocol: str
) -> None:
    """As Java's client offers one. The body is its body, be it sent at once or later, and never a request."""
    offer = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", protocol),
        ("http2-settings", "AAEAAEAAAAIA"),
    ]
    call = chat(gateway.key, fields=offer)
    head, body = call.split(b"\r\n\r\n", 1)
    async with Caller(gateway) as caller:
        await caller.send(call + call)
        assert [(await caller.answer()).status for _ in range(2)] == [200, 200]
        await caller.send(head + b"\r\n\r\n")
        await fake_engine.wait(requests=2)
        await caller.send(body)
        assert (await caller.answer()).status == 200
        inner = request("GET", "/healthz")
        await caller.send(request("POST", CHAT, [*offer, ("x-api-key", gateway.key)], inner))
        assert (await caller.answer()).error["code"] == "invalid_json"
        await caller.send(HEALTH)
        assert (await caller.answer()).body == b'{"status":"ok"}'
    assert len(await fake_engine.requests()) == 3


async def test_endless_trailers_are_stopped(gateway: Gateway) -> None:
    """One that does not end, or a million: none is kept, and the connection does not last."""
    before = await gateway.metric("process_resident_memory_bytes")
    floods = []
    for method, path in (("GET", "/healthz"), ("POST", CHAT)):
        head = request(method, path, [("x-api-key", gateway.key), ("transfer-encoding", "chunked")])
        for piece in (b"a" * 100_000, b"x-trailer: a\r\n" * 7_000):
            floods.append(send_all_then_read(gateway, head + b"0\r\nx-trailer: ", piece, 300))  # noqa: PERF401
    await asyncio.gather(*floods)
    assert await gateway.metric("process_resident_memory_bytes") - before < 30_000_000  # of 120 MB


async def test_who_closes_his_side_has_left(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """A half-closed connection is how most departures look, so the engine's work ends."""
    await fake_engine.script([{"hang": True}])
    async with Caller(gateway) as caller:
        await caller.send(chat(gateway.key))
        await fake_engine.wait(running=1)
        caller.close_sending()
        await fake_engine.wait(aborted=1)
        assert await caller.rest() == b""
