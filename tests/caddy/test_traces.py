"""What Caddy leaves behind: logs without secrets, and metrics on a port of their own."""

import json

import httpx

from tests.caddy.sites import Site
from tests.local.upstream import Upstream
from tests.running import sample

SECRETS = {"authorization": "Bearer sk-gw-secret1", "x-api-key": "sk-gw-secret2", "cookie": "a=secret3"}


async def test_logs_hold_no_secret(site: Site, upstream: Upstream) -> None:
    """Neither keys, cookies nor query strings, whether a request succeeds, fails or is refused."""
    async with site.client() as client, httpx.AsyncClient(trust_env=False) as http:
        for path in ("/echo", "/hang-up", "/admin", "/grafana/login"):
            for url in (site.url, site.plain_url):
                caller = client if url == site.url else http
                await caller.post(f"{url}{path}?api_key=sk-gw-secret4", headers=SECRETS)
    lines = [json.loads(line) for line in site.log.read_text().splitlines()]
    logged = {line["request"]["uri"] for line in lines if "request" in line}
    assert {"/echo", "/hang-up", "/admin", "/grafana/login"} <= logged
    assert "secret" not in site.log.read_text()
    assert upstream.requests.qsize() == 2


async def test_metrics_are_apart(site: Site) -> None:
    """Prometheus reads requests by code on a plain port that is not published."""
    async with httpx.AsyncClient(trust_env=False) as http:
        await http.get(f"{site.plain_url}/ca.crt")
        text = (await http.get(site.metrics_url)).text
    assert sample(text, "caddy_http_request_duration_seconds_count", code="200") >= 1
    assert "secret" not in text
