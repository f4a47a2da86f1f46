"""An engine that strangers' code has taken over: what it shows Prometheus is believed of the engine alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from tests.prometheus.programs import Programs, serving
from tests.prometheus.test_configuration import configuration
from tests.running import free_port, http_client, wait_for

TRUE = "vllm:num_requests_running 3\nprocess_start_time_seconds 7\n"
FORGED = """gateway_key_store_up{job="gateway"} 0
gateway_engine_up 0
node_memory_MemAvailable_bytes{job="node"} 1
probe_success{job="site"} 0
up{job="gateway"} 0
ALERTS{alertname="KeyStoreUnreadable"} 1
gateway:gateway_requests_failed:ratio_rate1h 1
model_name:vllm_num_requests_waiting:sum 99
vllm:num_requests_created 1
"""


@contextlib.asynccontextmanager
async def engine(exposition: str) -> AsyncIterator[str]:
    """Something at an address that answers whatever is asked with these metrics."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            body = exposition.encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n")
            writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def seen(programs: Programs, folder: Path, exposition: str, awaited: str = "up") -> dict[str, float]:
    """The series that a real Prometheus has of it by name, once `awaited` is one; its job is the stack's."""
    (job,) = [job for job in configuration()["scrape_configs"] if job["job_name"] == "vllm"]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        programs.path("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    async with engine(exposition) as target:
        alone = {"scrape_configs": [job | {"scrape_interval": "1s", "scrape_timeout": "1s"}
                                    | {"static_configs": [{"targets": [target]}]}]}  # fmt: skip
        (folder / "prometheus.yml").write_text(yaml.safe_dump(alone))
        async with (
            serving(command, f"{url}/-/ready", folder / "log"),
            http_client() as http,
        ):

            async def asked() -> list[dict[str, Any]]:
                answer = await http.get(f"{url}/api/v1/query", params={"query": '{job=~".+"}'})
                result: list[dict[str, Any]] = answer.json()["data"]["result"]
                return result

            shown: dict[str, float] = {}

            async def scraped() -> bool:
                shown.update({one["metric"]["__name__"]: float(one["value"][1]) for one in await asked()})
                return awaited in shown

            await wait_for(scraped)
            return shown


def without_scrapes(shown: dict[str, float]) -> dict[str, float]:
    """What is left when Prometheus' own series of each scrape are taken out."""
    return {name: value for name, value in shown.items() if not name.startswith("scrape_")}


async def test_it_cannot_speak_for_others(programs: Programs, tmp_path: Path) -> None:
    """Neither for gateway, host and site, nor for rules and alerts; its own metrics are read."""
    shown = without_scrapes(await seen(programs, tmp_path, TRUE + FORGED, "vllm:num_requests_running"))
    assert shown == {"up": 1, "vllm:num_requests_running": 3, "process_start_time_seconds": 7}


async def test_it_cannot_fill_the_memory_with_series(programs: Programs, tmp_path: Path) -> None:
    """Far more than vLLM has: none of them is kept, and it counts as down."""
    many = "".join(f'vllm:x{{n="{number}"}} 1\n' for number in range(50_001))
    assert without_scrapes(await seen(programs, tmp_path, many)) == {"up": 0}


async def test_it_cannot_fill_the_memory_with_text(programs: Programs, tmp_path: Path) -> None:
    """One line of 21 MB is as good as a million."""
    assert without_scrapes(await seen(programs, tmp_path, TRUE + "# " + "x" * 21_000_000 + "\n")) == {"up": 0}
