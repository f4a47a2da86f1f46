"""What Caddy leaves behind: logs without secrets, and metrics on a port of their own."""

import asyncio
import json

import pytest

from tests.caddy.sites import Site
from tests.local.upstream import Upstream
from tests.running import http_client, sample, wait_for, whole_lines

SECRETS = {"authorization": "Bearer sk-gw-secret1", "x-api-key": "sk-gw-secret2", "cookie": "a=secret3"}


async def test_logs_hold_no_secret(site: Site, upstream: Upstream) -> None:
    """Neither keys, cookies nor query strings, whether a request succeeds, fails or is refused."""
    paths = ("/echo", "/hang-up", "/admin", "/grafana/login")
    async with site.client() as client, http_client() as http:
        for path in paths:
            for url in (site.url, site.plain_url):
                caller = client if url == site.url else http
                await caller.post(f"{url}{path}?api_key=sk-gw-secret4", headers=SECRETS)

    async def logged() -> bool:
        return all(uris(site).count(path) >= 2 for path in paths)

    await wait_for(logged, evidence=site.log.read_text)
    assert "secret" not in site.log.read_text()
    assert upstream.requests.qsize() == 2


@pytest.mark.usefixtures("upstream")
@pytest.mark.parametrize(
    ("target", "logged"),
    [
        ("/traced-a%3fapi_key=secret5", "/traced-a"),
        ("/traced-b%3Fapi_key=secret5", "/traced-b"),
        ("/traced-c%253fapi_key=secret5", "/traced-c"),
        ("/traced-d;key=secret5", "/traced-d"),
        ("/traced-e%3Bkey=secret5", "/traced-e"),
        ("/traced-f&key=secret5", "/traced-f"),
        ("/traced-g%23secret5", "/traced-g"),
        ("/traced-h/sk-gw-secret5", "/traced-h/"),
        ("http://user:secret5@localhost/traced-i", "http:"),
        ("http://secret5@localhost/traced-j?x", "http:"),
        ("/traced-k/v1/models/a@b", "/traced-k/v1/models/a@b"),
    ],
)
async def test_a_target_is_logged_without_what_may_be_a_key(site: Site, target: str, logged: str) -> None:
    """However it came to stand there, on both ports; a plain path stays readable."""
    before = len(whole_lines(site.log).splitlines())
    for port, context in ((site.https, site.trust), (site.http, None)):
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
        writer.write(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()

    async def written() -> bool:
        return uris(site)[before:].count(logged) >= 2

    await wait_for(written, evidence=site.log.read_text)
    assert "secret" not in site.log.read_text()


def uris(site: Site) -> list[str]:
    """The target in each line of the log, empty where it is of no request."""
    lines = [json.loads(line) for line in whole_lines(site.log).splitlines()]
    return [line.get("request", {}).get("uri", "") for line in lines]


async def test_metrics_are_apart(site: Site) -> None:
    """Prometheus reads requests by code on a plain port that is not published."""
    async with http_client() as http:
        await http.get(f"{site.plain_url}/ca.crt")

        async def counted() -> bool:
            text = (await http.get(site.metrics_url)).text
            assert "secret" not in text
            return sample(text, "caddy_http_request_duration_seconds_count", code="200") >= 1

        await wait_for(counted)
