"""What the dashboards ask of the engine is what the engine serves, name by name."""

import httpx

from tests.grafana import panels
from tests.grafana.exporters import exposition, series
from tests.real.conftest import Real

SPECULATION = "vllm:spec_decode_"  # served only where it is switched on


async def test_the_engine_serves_every_metric_that_a_dashboard_asks_for(real: Real) -> None:
    """Without a call before: a fresh stack has no empty panel."""
    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
        served = series((await client.get(f"{real.tiny.url}/metrics")).text)
    queries = [query for name in panels.NAMES for query in panels.queries(panels.load(name))]
    asked = {
        metric for query in queries for metric in panels.metrics(query.expr) if metric.startswith("vllm:")
    }
    assert {metric for metric in asked - served if not metric.startswith(SPECULATION)} == set()
    recorded = {metric for metric in series(exposition("vllm")) if not metric.startswith(SPECULATION)}
    assert recorded <= served, "tests/grafana/expositions/vllm.txt is of another vLLM"
