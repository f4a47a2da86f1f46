"""Caddy passes on what the gateway says as it says it, and the callers' departures too."""

import asyncio
import json
import re
import ssl

import httpx
import pytest

from tests.local.caddies import Caddy
from tests.local.http2 import Http2
from tests.local.upstream import Upstream
from tests.running import wait_for, whole_lines

BOTH_PROTOCOLS = pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
PATIENCE_SECONDS = 60.0


@BOTH_PROTOCOLS
async def test_events_arrive_one_by_one(caddy: Caddy, upstream: Upstream, http2: bool) -> None:
    """The head comes before the first event, and each event before the next is written, unpacked."""
    async with (
        caddy.client(http2) as client,
        client.stream("POST", "/stream", headers={"accept-encoding": "gzip, zstd, br"}) as response,
    ):
        assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        assert "content-encoding" not in response.headers
        chunks = response.aiter_raw()
        for number in range(5):
            event = b"data: %d\n\n" % number
            upstream.events.put_nowait(event)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await anext(chunks) == event
        upstream.events.put_nowait(None)
        assert [chunk async for chunk in chunks if chunk] == []


@BOTH_PROTOCOLS
async def test_departure_in_a_stream(caddy: Caddy, upstream: Upstream, http2: bool) -> None:
    """A caller who leaves between two events ends the request behind Caddy."""
    async with caddy.client(http2) as client, client.stream("POST", "/stream") as response:
        upstream.events.put_nowait(b"data: 1\n\n")
        assert await anext(response.aiter_raw())
    await _departed(upstream)


async def test_departure_before_the_head(caddy: Caddy, upstream: Upstream) -> None:
    """A caller who leaves while nothing was answered yet ends the request."""
    async with caddy.client() as client:
        waiting = asyncio.create_task(client.post("/silent", json={"model": "m"}))
        request = await upstream.requests.get()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE_SECONDS):
        await request.departed.wait()


@pytest.mark.parametrize("leave", ["reset", "abort"])
@pytest.mark.parametrize("path", ["/stream", "/silent"])
async def test_departure_over_http2(caddy: Caddy, upstream: Upstream, path: str, leave: str) -> None:
    """Over HTTP/2 a caller leaves by resetting its stream or by dropping the connection: both pass on."""
    async with Http2(caddy.ports.https, caddy.trust) as connection:
        stream = connection.post(path)
        request = await upstream.requests.get()
        if leave == "reset":
            connection.reset(stream)
        else:
            connection.abort()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await request.departed.wait()


async def _departed(upstream: Upstream) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await (await upstream.requests.get()).departed.wait()


async def test_gateway_that_is_away(caddy: Caddy) -> None:
    """Nobody behind Caddy for longer than it tries: 503 in OpenAI's shape, with Retry-After."""
    async with caddy.client() as client:
        response = await client.post("/v1/chat/completions", json={})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}
    assert response.json()["error"]["code"] == "shutting_down"


async def test_gateway_that_restarts(caddy: Caddy) -> None:
    """A request that comes while the gateway restarts is answered once it listens again."""
    async with caddy.client() as client:
        for _ in range(3):  # a machine that stands still may outlast the time for which Caddy tries
            calling = asyncio.create_task(client.post("/echo", json={"model": "m"}))
            refused = asyncio.sleep(0.5)  # long enough for at least one refused dial
            await refused
            async with Upstream(caddy.ports.gateway):
                if (status := (await calling).status_code) == 200:
                    break
    assert status == 200


async def test_gateway_that_hangs_up(caddy: Caddy, upstream: Upstream) -> None:
    """A connection lost before the head is an error in OpenAI's shape, and the request is not sent twice."""
    async with caddy.client() as client:
        response = await client.post("/hang-up", json={"model": "m"})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "shutting_down")
    assert upstream.requests.qsize() == 1


async def test_foreign_host(caddy: Caddy, upstream: Upstream) -> None:
    """A host that is not ours is refused, not answered with an empty 200, and goes no further."""
    async with caddy.client() as client:
        response = await client.post("/v1/chat/completions", headers={"host": "evil.example"})
    assert response.status_code == 421
    assert response.json()["error"]["code"] == "not_found"
    assert upstream.requests.empty()


@pytest.mark.usefixtures("upstream")
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_names_of_the_certificate(caddy: Caddy, name: str) -> None:
    """The certificate is good for localhost and for the address, for a client that has the bundle."""
    async with caddy.client() as client:
        response = await client.get(f"https://{name}:{caddy.ports.https}/echo")
    assert response.status_code == 200


async def test_verification_is_real(caddy: Caddy) -> None:
    """Without our root, a client refuses the certificate: the bundle is what makes it trusted."""
    async with httpx.AsyncClient(verify=ssl.create_default_context(), trust_env=False, timeout=60) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(caddy.url)


@pytest.mark.usefixtures("upstream")
async def test_long_heads_are_the_gateways_to_refuse(caddy: Caddy) -> None:
    """A head over the gateway's 64 KiB reaches it, so that the refusal has OpenAI's shape."""
    async with caddy.client() as client:
        response = await client.get("/echo", headers={"x-long": "a" * 70_000})
    assert "a" * 70_000 in response.json()["head"]


@pytest.mark.parametrize(("path", "status"), [("/refuse", "401"), ("/accept", "200")])
async def test_expect_continue(caddy: Caddy, upstream: Upstream, path: str, status: str) -> None:
    """A client that waits for `100 Continue` gets it once, and then the gateway's answer."""
    reader, writer = await asyncio.open_connection("localhost", caddy.ports.https, ssl=caddy.trust)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n"
    writer.write(f"{head}connection: close\r\n\r\n".encode())
    received = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"{}")
    received += await reader.read()
    writer.close()
    assert re.findall(r"HTTP/1\.1 (\d+)", received.decode()) == ["100", status]
    assert "expect:" not in (await upstream.requests.get()).head.lower()


async def test_logs_hold_no_secret(caddy: Caddy, upstream: Upstream) -> None:
    """Neither keys nor query strings get into Caddy's log, whether a request succeeds or fails."""
    headers = {"authorization": "Bearer sk-gw-secret1", "x-api-key": "sk-gw-secret2", "cookie": "a=secret3"}
    async with caddy.client() as client:
        for path in ("/echo", "/hang-up"):
            await client.post(f"{path}?api_key=sk-gw-secret4", headers=headers)

    async def logged() -> bool:
        lines = [json.loads(line) for line in whole_lines(caddy.log).splitlines()]
        return any(line.get("request", {}).get("uri") == "/hang-up" for line in lines)

    await wait_for(logged, evidence=caddy.log.read_text)
    assert "secret" not in caddy.log.read_text()
    assert upstream.requests.qsize() == 2
