"""A real Prometheus with the stack's rules, scraping each second what a test names."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.prometheus.programs import RULES, Programs, serving
from tests.running import free_port, http_client

INTERVAL = "1s"


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs."""

    url: str

    async def values(self, expr: str) -> list[float]:
        """The value of each series that a query has now. Fails with what Prometheus says of a wrong one."""
        async with http_client() as client:
            asked = await client.get(f"{self.url}/api/v1/query", params={"query": expr})
        answer: dict[str, Any] = asked.json()
        assert answer["status"] == "success", f"{expr}\n{answer['error']}"
        assert answer["data"]["resultType"] == "vector", expr
        return [float(sample["value"][1]) for sample in answer["data"]["result"]]


@contextlib.asynccontextmanager
async def watching(programs: Programs, folder: Path, jobs: Mapping[str, str]) -> AsyncIterator[Prometheus]:
    """A Prometheus until the block ends; the target of a job is `host:port/path`."""
    config = write(folder, jobs)
    address = f"127.0.0.1:{free_port()}"
    command = [
        programs.path("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    async with serving(command, f"http://{address}/-/ready", folder / "log"):
        yield Prometheus(f"http://{address}")


def write(folder: Path, jobs: Mapping[str, str]) -> Path:
    """Its configuration, in a folder that is made for it."""
    folder.mkdir()
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration(jobs)))
    return file


def configuration(jobs: Mapping[str, str]) -> dict[str, Any]:
    """The same as a document: JSON is YAML too."""
    return {
        "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": [str(RULES / "*.yml")],
        "scrape_configs": [scrape(job, *target.split("/", 1)) for job, target in jobs.items()],
    }


def scrape(job: str, address: str, path: str) -> dict[str, Any]:
    """One job with one target."""
    return {"job_name": job, "metrics_path": f"/{path}", "static_configs": [{"targets": [address]}]}
