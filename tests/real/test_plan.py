"""`gateway plan` says beforehand what a real engine reports of its KV cache once it runs."""

import json
import re

import pytest
from typer.testing import CliRunner

from deploy.local.engine import ServedModel
from gateway.cli import app
from tests.real import engines
from tests.real.conftest import Real
from tests.real.engines import RealEngine

LABEL = re.compile(r'(\w+)="([^"]*)"')


async def reported(engine: RealEngine) -> dict[str, str]:
    """The labels of `vllm:cache_config_info`: what it has also logged at start."""
    text = (await engine.http.get(f"{engine.url}/metrics")).text
    [line] = [line for line in text.splitlines() if line.startswith("vllm:cache_config_info{")]
    return dict(LABEL.findall(line))


@pytest.mark.parametrize("which", ["chat", "tiny"])
async def test_the_plan_is_what_the_engine_reports(real: Real, which: str) -> None:
    """Blocks, their size, tokens and concurrency of both models, each planned from its folder alone."""
    chat, tiny = engines.prepare()
    engine, model = {"chat": (real.chat, chat), "tiny": (real.tiny, tiny)}[which]
    labels = await reported(engine)
    found = planned(model, labels["kv_cache_memory_bytes"])
    assert found["num_blocks"] == int(labels["num_gpu_blocks"])
    assert found["block_size"] == int(labels["block_size"])
    assert found["tokens"] == int(labels["kv_cache_size_tokens"])
    assert found["max_concurrency"] == float(labels["kv_cache_max_concurrency"])


def planned(model: ServedModel, kv_cache_bytes: str) -> dict[str, float]:
    """The cache by `gateway plan FOLDER --hardware cpu --kv-cache-bytes N --json`."""
    argv = ["plan", str(model.folder), "--hardware", "cpu", "--kv-cache-bytes", kv_cache_bytes, "--json"]
    result = CliRunner().invoke(app, argv)
    assert result.exit_code == 0, result.output
    found: dict[str, float] = json.loads(result.stdout)["kv_cache"]
    return found
