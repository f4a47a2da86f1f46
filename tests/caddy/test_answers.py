"""What Caddy says itself has OpenAI's shape; the operator's pages do not pass; Grafana has its path."""

import asyncio
import re
from typing import Any

import httpx
import pytest

from tests.caddy.sites import Site
from tests.local.upstream import Upstream

KEY = {"authorization": "Bearer sk-gw-secret"}
OPS = ["/metrics", "/metrics/", "/Metrics", "//metrics", "/%6detrics", "/admin", "/admin/keys", "/readyz"]


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error object, if the answer is one in OpenAI's shape."""
    assert response.headers["content-type"] == "application/json"
    error: dict[str, Any] = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def plain(site: Site) -> httpx.AsyncClient:
    """A client for port 80 that follows nothing."""
    return httpx.AsyncClient(base_url=site.plain_url, timeout=60, trust_env=False)


async def test_gateway_that_is_away(site: Site) -> None:
    """Nobody behind Caddy for longer than it tries: 503, with when to try again."""
    async with site.client() as client:
        response = await client.post("/v1/chat/completions", json={})
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert error_of(response)["code"] == "shutting_down"


async def test_gateway_that_restarts(site: Site) -> None:
    """A request that comes while the gateway restarts is answered once it listens again."""
    async with site.client() as client:
        for _ in range(3):  # a machine that stands still may outlast the time for which Caddy tries
            calling = asyncio.create_task(client.post("/echo", json={"model": "m"}))
            refused = asyncio.sleep(0.5)  # long enough for at least one refused dial
            await refused
            async with Upstream(site.gateway):
                if (status := (await calling).status_code) == 200:
                    break
    assert status == 200


async def test_gateway_that_hangs_up(site: Site, upstream: Upstream) -> None:
    """A connection lost before the head is an error, and the request is not sent twice."""
    async with site.client() as client:
        response = await client.post("/hang-up", json={"model": "m"})
    assert (response.status_code, error_of(response)["code"]) == (503, "shutting_down")
    assert upstream.requests.qsize() == 1


@pytest.mark.parametrize("path", OPS)
async def test_ops_end_here(site: Site, upstream: Upstream, path: str) -> None:
    """Metrics, admin API and readiness, however they are spelled: nobody behind Caddy hears of it."""
    async with site.client() as client:
        response = await client.get(httpx.URL(site.url).copy_with(raw_path=path.encode()))
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")
    assert upstream.requests.empty()


async def test_grafana_has_a_path(site: Site, upstream: Upstream, grafana: Upstream) -> None:
    """Below /grafana/ requests go to Grafana as they came, and only those."""
    async with site.client() as client:
        moved = await client.get("/grafana")
        response = await client.get("/grafana/api/health")
        await client.get("/grafanas")
    assert (moved.status_code, moved.headers["location"]) == (302, "/grafana/")
    head = response.json()["head"]
    assert head.startswith("GET /grafana/api/health HTTP/1.1")
    assert f"Host: localhost:{site.https}" in head
    assert grafana.requests.qsize() == 1
    assert upstream.requests.qsize() == 1


async def test_metrics_of_grafana_end_here(site: Site, grafana: Upstream) -> None:
    """They need no login, unlike the rest of it."""
    async with site.client() as client:
        response = await client.get("/grafana/metrics")
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")
    assert grafana.requests.empty()


async def test_grafana_that_is_away(site: Site, upstream: Upstream) -> None:
    """That is said of Grafana, not of the gateway, which goes on."""
    async with site.client() as client:
        response = await client.get("/grafana/")
        assert response.status_code == 503
        assert "Grafana" in error_of(response)["message"]
        assert (await client.get("/echo")).status_code == 200
    assert upstream.requests.qsize() == 1


async def test_foreign_host(site: Site, upstream: Upstream) -> None:
    """A host that is not ours is refused on both ports, not answered with an empty 200."""
    foreign = {"host": "evil.example"}
    async with site.client() as client, plain(site) as http:
        for response in (
            await client.post("/v1/models", headers=foreign),
            await http.get("/", headers=foreign),
        ):
            assert response.status_code == 421
            assert "localhost 127.0.0.1" in error_of(response)["message"]
    assert upstream.requests.empty()


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/v1/chat/completions", KEY),
        ("POST", "/", {}),
        ("GET", "/v1/models", {}),
        ("GET", "/healthz", KEY),
        ("GET", "/", {"x-api-key": "sk-gw-secret"}),
        ("GET", "/", {"api-key": "sk-gw-secret"}),
        ("GET", "/?api_key=secret", {}),
        ("GET", "/grafana/?a=b&API-Key=secret", {}),
        ("GET", "/?key=secret", {}),
        ("GET", "/?x=sk-gw-secret", {}),
    ],
)
async def test_calls_over_http_are_refused(
    site: Site, upstream: Upstream, method: str, path: str, headers: dict[str, str]
) -> None:
    """Not led to https: a client would follow without a word, and send its key in clear each time."""
    async with plain(site) as http:
        response = await http.request(method, path, headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_request")
    assert f"{site.url}/v1." in error_of(response)["message"]
    assert upstream.requests.empty()


async def test_browsers_are_led_to_https(site: Site) -> None:
    """To the port that is published, with path and query."""
    async with plain(site) as http:
        response = await http.get("/grafana/d/overview?var-key=1", headers={"cookie": "a=b"})
    assert response.status_code == 308
    assert response.headers["location"] == f"{site.url}/grafana/d/overview?var-key=1"


@pytest.mark.usefixtures("upstream")
async def test_long_heads_are_the_gateways_to_refuse(site: Site) -> None:
    """A head over the gateway's 64 KiB reaches it, so that the refusal has OpenAI's shape."""
    async with site.client() as client:
        response = await client.get("/echo", headers={"x-long": "a" * 70_000})
    assert "a" * 70_000 in response.json()["head"]


@pytest.mark.parametrize(("path", "status"), [("/refuse", "401"), ("/accept", "200")])
async def test_expect_continue(site: Site, upstream: Upstream, path: str, status: str) -> None:
    """A client that waits for `100 Continue` gets it once, and then the gateway's answer."""
    reader, writer = await asyncio.open_connection("localhost", site.https, ssl=site.trust)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n"
    writer.write(f"{head}connection: close\r\n\r\n".encode())
    received = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"{}")
    received += await reader.read()
    writer.close()
    assert re.findall(r"HTTP/1\.1 (\d+)", received.decode()) == ["100", status]
    assert "expect:" not in (await upstream.requests.get()).head.lower()


@pytest.mark.usefixtures("upstream")
async def test_the_callers_address_is_caddys_to_say(site: Site) -> None:
    """What a caller claims to be does not reach the gateway, which believes Caddy."""
    async with site.client() as client:
        response = await client.get("/echo", headers={"x-forwarded-for": "6.6.6.6"})
    assert "6.6.6.6" not in response.json()["head"]
    assert "X-Forwarded-For: " in response.json()["head"]
