"""The nginx sample, run by a real nginx: valid, and as quick to pass on words and departures as Caddy."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme

from tests.caddy.sites import ROOT
from tests.local.upstream import Upstream
from tests.running import free_port, http_client, wait_for
from tests.stack.debian import AptFailure, codename, unpacked

PLACES = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
SAMPLE = ROOT / "examples" / "proxies" / "nginx.conf"
NAME = "llm.example.com"
PATIENCE_SECONDS = 60.0


def _program() -> str:
    """The machine's nginx, or Debian's, unpacked beside it."""
    installed = shutil.which("nginx", path=PLACES)
    if installed is None and not codename():
        pytest.skip("the sample for nginx needs nginx to be tried")
    try:
        return installed or str(unpacked("nginx", codename(), ["nginx"]) / "usr" / "sbin" / "nginx")
    except AptFailure as failure:
        pytest.skip(f"the sample for nginx needs nginx to be tried: {failure}")


@dataclass(frozen=True)
class Nginx:
    """A running nginx with the sample, whose ports, files and upstreams alone were changed."""

    program: str
    folder: Path
    authority: trustme.CA
    https: int
    http: int
    gateway: int
    grafana: int

    def client(self) -> httpx.AsyncClient:
        """A client that calls it by its name, verifies it, and follows nothing."""
        trust = ssl.create_default_context()
        self.authority.configure_trust(trust)
        return httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{self.https}", headers={"host": NAME}, verify=trust, timeout=60,
            trust_env=False,
        )  # fmt: skip

    def command(self, *arguments: str) -> list[str]:
        """nginx with this configuration."""
        return [self.program, "-p", str(self.folder), "-c", str(self.folder / "main.conf"), *arguments]

    def write(self) -> None:
        """Write the sample with this machine's ports and files, and the lines around it."""
        text = SAMPLE.read_text()
        certificate = self.authority.issue_cert(NAME, "127.0.0.1")
        certificate.private_key_and_cert_chain_pem.write_to_path(self.folder / "all.pem")
        for wanted, here in {
            "listen [::]:443 ssl;": "",
            "listen [::]:80;": "",
            "listen 443 ": f"listen 127.0.0.1:{self.https} ",
            "listen 80;": f"listen 127.0.0.1:{self.http};",
            "/etc/ssl/llm.example.com/fullchain.pem": str(self.folder / "all.pem"),
            "/etc/ssl/llm.example.com/privkey.pem": str(self.folder / "all.pem"),
            "/var/log/nginx/vllm-gateway.log": str(self.folder / "access.log"),
            "server 127.0.0.1:8080;": f"server 127.0.0.1:{self.gateway};",
            "http://127.0.0.1:3000;": f"http://127.0.0.1:{self.grafana};",
        }.items():
            assert wanted in text
            text = text.replace(wanted, here)
        (self.folder / "sample.conf").write_text(text)
        (self.folder / "main.conf").write_text(
            f"daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {self.folder}/body;\n"
            f"proxy_temp_path {self.folder}/proxy; fastcgi_temp_path {self.folder}/f;\n"
            f"uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s; include sample.conf; }}\n"
        )

    async def answers(self) -> bool:
        """Whether it listens."""
        try:
            async with http_client() as http:
                return (await http.get(f"http://127.0.0.1:{self.http}/")).status_code > 0
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
async def nginx(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Nginx]:
    """It, for all tests of this file."""
    folder = tmp_path_factory.mktemp("nginx")
    ports = [free_port() for _ in range(4)]
    made = Nginx(_program(), folder, trustme.CA(), *ports)
    made.write()
    process = await asyncio.create_subprocess_exec(
        *made.command(), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await wait_for(made.answers, evidence=lambda: (folder / "error.log").read_text())
    yield made
    process.terminate()
    await process.wait()


@pytest.fixture
async def upstream(nginx: Nginx) -> AsyncIterator[Upstream]:
    """The scripted server where it expects the gateway."""
    async with Upstream(nginx.gateway) as server:
        yield server


def test_valid(nginx: Nginx) -> None:
    """nginx itself says so."""
    done = subprocess.run(nginx.command("-t"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_events_arrive_one_by_one(nginx: Nginx, upstream: Upstream) -> None:
    """The head before the first event, and each event before the next is written."""
    headers = {"accept-encoding": "gzip"}
    async with nginx.client() as client, client.stream("POST", "/stream", headers=headers) as response:
        assert "content-encoding" not in response.headers
        chunks = response.aiter_raw()
        for number in range(5):
            event = b"data: %d\n\n" % number
            upstream.events.put_nowait(event)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await anext(chunks) == event


@pytest.mark.parametrize("path", ["/stream", "/silent"])
async def test_departure(nginx: Nginx, upstream: Upstream, path: str) -> None:
    """A caller who leaves ends the request behind nginx."""
    async with nginx.client() as client:
        calling = asyncio.create_task(client.post(path))
        request = await upstream.requests.get()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await request.departed.wait()


async def test_gateway_that_is_away(nginx: Nginx) -> None:
    """503 in OpenAI's shape, with when to try again."""
    async with nginx.client() as client:
        response = await client.post("/v1/chat/completions", json={})
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["code"] == "shutting_down"


@pytest.mark.usefixtures("upstream")
async def test_large_bodies_and_heads_are_the_gateways_to_refuse(nginx: Nginx) -> None:
    """nginx's own limits would answer in HTML."""
    async with nginx.client() as client:
        response = await client.post("/echo", content=b"x" * 5_000_000, headers={"x-long": "a" * 60_000})
    assert response.status_code == 200
    assert "a" * 60_000 in response.json()["head"]


async def test_calls_over_http_are_refused_and_grafanas_metrics_hidden(
    nginx: Nginx, upstream: Upstream
) -> None:
    """As Caddy does it; and no query string gets into the log."""
    async with Upstream(nginx.grafana) as grafana, nginx.client() as client:
        assert (await client.get("/grafana/login?token=secret")).status_code == 200
        assert (await client.get("/grafana/metrics")).status_code == 404
        plain = f"http://127.0.0.1:{nginx.http}"
        assert (await client.post(f"{plain}/v1/chat/completions")).json()["error"]["type"]
        moved = await client.get(f"{plain}/grafana/")
        assert (moved.status_code, moved.headers["location"]) == (308, f"https://{NAME}/grafana/")
        assert grafana.requests.qsize() == 1
    assert upstream.requests.empty()

    async def logged() -> bool:
        return "/grafana/login" in (nginx.folder / "access.log").read_text()

    await wait_for(logged)
    assert "secret" not in (nginx.folder / "access.log").read_text()
