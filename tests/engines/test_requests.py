"""What the client writes, and how it writes large bodies."""

import hashlib
import json
import tracemalloc

import pytest

from gateway.engines import Client, ConnectionLost
from gateway.engines.address import parse
from tests.engines.calls import HEADERS, PATH, call, client_of, post, rest
from tests.engines.loops import on_each_loop
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine

MIB = 1 << 20
LARGE = bytes(range(256)) * (32 * MIB // 256)


@on_each_loop
async def test_only_host_and_length_are_added(engine: FakeEngine) -> None:
    """The engine sees the relay's headers as they are: no user agent, no accepted encodings."""
    async with client_of(engine) as client:
        await call(client, b'{"model":"fake-model"}')
    [request] = await engine.requests()
    assert (request.method, request.target) == ("POST", "/v1/chat/completions")
    assert request.headers == (
        ("host", engine.url.removeprefix("http://")),
        ("content-type", "application/json"),
        ("content-length", "22"),
    )
    assert request.body == b'{"model":"fake-model"}'


@pytest.mark.parametrize(("method", "length"), [(b"GET", None), (b"HEAD", None), (b"POST", "0")])
@on_each_loop
async def test_a_request_without_a_body(engine: FakeEngine, method: bytes, length: str | None) -> None:
    """GET and HEAD announce no body, POST an empty one."""
    await engine.script(scripts.no_content())
    async with client_of(engine) as client:
        exchange = await client.send(method, PATH, [])
        await exchange.head()
        exchange.close()
    [request] = await engine.requests()
    assert request.header("content-length") == length


@on_each_loop
async def test_a_path_in_the_url_goes_before_the_target(engine: FakeEngine) -> None:
    """An engine behind a path prefix is reached there."""
    await engine.script(scripts.chat())
    client = Client(engine.url + "/gpu0/", connect_timeout_seconds=60, keep_alive_seconds=600)
    await call(client)
    client.close()
    [request] = await engine.requests()
    assert request.target == "/gpu0/v1/chat/completions"


@pytest.mark.parametrize("evil", [b"\r", b"\n", b"\r\nx: y", b"\0"])
@pytest.mark.parametrize("where", ["method", "target", "name", "value"])
@on_each_loop
async def test_nothing_that_would_end_a_line_is_written(engine: FakeEngine, evil: bytes, where: str) -> None:
    """CR, LF and NUL are refused wherever they stand, and no connection is opened."""
    parts = {"method": b"POST", "target": PATH, "name": b"x-name", "value": b"value"}
    parts[where] += evil
    async with client_of(engine) as client:
        with pytest.raises(ValueError, match="CR, LF or NUL"):
            await client.send(parts["method"], parts["target"], [(parts["name"], parts["value"])], b"{}")
    assert (await engine.stats())["accepted"] == 0


@pytest.mark.parametrize(("method", "target"), [(b"POST", b"/a b"), (b"POST /x", b"/a")])
@on_each_loop
async def test_a_request_line_has_three_parts(engine: FakeEngine, method: bytes, target: bytes) -> None:
    """A space in the method or the target is refused."""
    async with client_of(engine) as client:
        with pytest.raises(ValueError, match="no space"):
            await client.send(method, target, HEADERS, b"{}")


@pytest.mark.parametrize(
    ("url", "authority", "port"),
    [
        ("http://[::1]:8000", b"[::1]:8000", 8000),
        ("http://VLLM", b"vllm", 80),
        ("https://bücher.example/", b"xn--bcher-kva.example", 443),
    ],
)
def test_what_host_says(url: str, authority: bytes, port: int) -> None:
    """The URL's host and port, in the form that HTTP wants."""
    found = parse(url)
    assert (found.authority, found.port, found.base) == (authority, port, b"")


@pytest.mark.parametrize("url", ["ftp://host", "http://", "127.0.0.1:8000", "http://host:x", "http://a..b"])
async def test_a_url_that_is_no_engines_is_refused(url: str) -> None:
    """At once, not at the first request."""
    with pytest.raises(ValueError, match=r"URL|[Pp]ort"):
        Client(url, connect_timeout_seconds=60, keep_alive_seconds=600)


@on_each_loop
async def test_a_large_body_arrives_whole_and_is_never_copied_whole(engine: FakeEngine) -> None:
    """32 MiB go out as fast as the engine reads; the memory on the way is a small part of that."""
    await engine.script([{"reply": "digest"}])
    async with client_of(engine) as client:
        await call(client)
        tracemalloc.start()
        try:
            _, answer = await call(client, LARGE)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert json.loads(answer) == {"bytes": len(LARGE), "sha256": hashlib.sha256(LARGE).hexdigest()}
    assert peak_bytes < 4 * MIB


@on_each_loop
async def test_a_connection_is_reused_after_a_large_body(engine: FakeEngine) -> None:
    """Once the engine has read all of it, the next request may follow."""
    await engine.script([{"reply": "digest"}])
    async with client_of(engine) as client:
        for _ in range(2):
            _, answer = await call(client, LARGE)
            assert json.loads(answer)["bytes"] == len(LARGE)
    assert (await engine.stats())["connections"] == 1


@on_each_loop
async def test_an_early_refusal_is_seen_while_the_body_is_still_being_written(engine: FakeEngine) -> None:
    """The engine answers and does not read on: its status counts, and the connection is not used again."""
    await engine.script([*scripts.error(413, "too large"), {"gate": "read"}], at="head")
    async with client_of(engine) as client:
        exchange = await post(client, LARGE)
        assert exchange.status == 413
        assert b"too large" in await rest(exchange)
        exchange.close()
        assert client.pool.idle_connections == 0
        await engine.open_gate("read")
        await engine.wait(open=0)


@on_each_loop
async def test_an_engine_that_ends_while_the_body_is_being_written_is_noticed(engine: FakeEngine) -> None:
    """Nobody waits for a body to be read by an engine that has gone."""
    await engine.script([{"gate": "read"}, {"reset": True}], at="head")
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, LARGE)
        await engine.wait(requests=1)
        await engine.open_gate("read")
        with pytest.raises(ConnectionLost):
            await exchange.head()
        exchange.close()


@on_each_loop
async def test_the_environments_proxies_are_not_asked(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine is inside the operator's network, whatever the way out of it is."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with client_of(engine) as client:
        assert (await call(client))[0] == 200
