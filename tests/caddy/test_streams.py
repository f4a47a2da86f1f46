"""Caddy passes on what the gateway says as it says it, and the callers' departures too."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.caddy.sites import Site
from tests.local.http2 import Http2
from tests.local.upstream import Upstream

BOTH_PROTOCOLS = pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
PATIENCE_SECONDS = 60.0
EVENT_SECONDS = 0.2
PACKERS = {"accept-encoding": "gzip, zstd, br"}


@BOTH_PROTOCOLS
async def test_events_arrive_one_by_one(site: Site, upstream: Upstream, http2: bool) -> None:
    """The head comes before the first event, each event before the next is written, and none is packed."""
    clock = asyncio.get_running_loop().time
    delays = []
    async with (
        site.client(http2) as client,
        client.stream("POST", "/stream", headers=PACKERS) as response,
    ):
        assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        assert "content-encoding" not in response.headers
        chunks = response.aiter_raw()
        for number in range(7):
            event = b"data: %d\n\n" % number
            written = clock()
            upstream.events.put_nowait(event)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await anext(chunks) == event
            delays.append(clock() - written)
        upstream.events.put_nowait(None)
        assert [chunk async for chunk in chunks if chunk] == []
    assert min(delays) < EVENT_SECONDS  # others may wait for a busy machine, but a clock's beat delays all


@BOTH_PROTOCOLS
@pytest.mark.usefixtures("upstream")
async def test_plain_answers_are_not_packed_either(site: Site, http2: bool) -> None:
    """What the gateway says the length of keeps it."""
    async with site.client(http2) as client:
        response = await client.post("/v1/chat/completions", headers=PACKERS, json={"model": "m"})
    assert "content-encoding" not in response.headers
    assert int(response.headers["content-length"]) == len(response.content)


@BOTH_PROTOCOLS
async def test_departure_in_a_stream(site: Site, upstream: Upstream, http2: bool) -> None:
    """A caller who leaves between two events ends the request behind Caddy."""
    async with site.client(http2) as client, client.stream("POST", "/stream") as response:
        upstream.events.put_nowait(b"data: 1\n\n")
        assert await anext(response.aiter_raw())
    await _departed(upstream)


@BOTH_PROTOCOLS
async def test_departure_before_the_head(site: Site, upstream: Upstream, http2: bool) -> None:
    """A caller who leaves while nothing was answered yet ends the request."""
    async with site.client(http2) as client:
        waiting = asyncio.create_task(client.post("/silent"))
        request = await upstream.requests.get()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE_SECONDS):
        await request.departed.wait()


@pytest.mark.parametrize("leave", ["reset", "abort"])
@pytest.mark.parametrize("path", ["/stream", "/silent"])
async def test_departure_frame_by_frame(site: Site, upstream: Upstream, path: str, leave: str) -> None:
    """Over HTTP/2 a caller leaves by resetting its stream or by dropping the connection: both pass on."""
    async with Http2(site.https, site.trust) as connection:
        stream = connection.post(path)
        request = await upstream.requests.get()
        if leave == "reset":
            connection.reset(stream)
        else:
            connection.abort()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await request.departed.wait()


async def _departed(upstream: Upstream) -> None:
    request = await upstream.requests.get()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await request.departed.wait()


async def test_body_that_comes_slowly_is_passed_on_as_it_comes(site: Site, upstream: Upstream) -> None:
    """Caddy neither waits for the whole of a body nor gives it a time of its own."""
    sent = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await sent.wait()
        yield b"}"

    async with site.client() as client:
        headers = {"content-length": "2"}
        calling = asyncio.create_task(client.post("/echo", content=body(), headers=headers))
        await upstream.requests.get()  # it is there although the body is not
        sent.set()
        assert (await calling).status_code == 200
