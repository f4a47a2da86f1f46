"""Real engines with caches of several kinds log at start what was planned: random weights, real memory."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.local.engine import ServedModel
from gateway.cli import app
from tests.planner.config_forms import Config
from tests.planner.configs import CONFIGS
from tests.real import engines

SIZE = re.compile(
    r"KV cache size: ([\d,]+) tokens, Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x"
)


def small(name: str, layers: int, vocabulary: int) -> Config:
    """One of the configs with so few layers that it loads at once."""
    found = json.loads(json.dumps(CONFIGS[name]))
    return {**found, "num_hidden_layers": layers, "vocab_size": vocabulary, "max_position_embeddings": 8192}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "layers", "flags"),
    [
        ("llama-gqa", 2, ("--max-model-len", "2048", "--block-size", "64")),
        ("gemma3", 6, ("--max-model-len", "8192")),
        ("qwen3-next-80b", 4, ("--max-model-len", "4096")),
    ],
)
async def test_the_log_of_a_start(tmp_path: Path, name: str, layers: int, flags: tuple[str, ...]) -> None:
    """Full, sliding and hybrid caches: the tokens and the concurrency of the log line."""
    _, tiny = engines.prepare()
    folder = tmp_path / name
    shutil.copytree(tiny.folder, folder, ignore=shutil.ignore_patterns("*.safetensors*"))
    vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps(small(name, layers, vocabulary)))
    engine = engines.start(
        ServedModel(name, folder), tmp_path / "start.log", ("--load-format", "dummy", *flags)
    )
    try:
        await engines.ready((engine,), tmp_path)
    finally:
        await engines.stop((engine,))
    [said] = SIZE.findall((tmp_path / "start.log").read_text(errors="replace"))
    argv = ["plan", str(folder), "--hardware", "cpu", "--kv-cache-bytes", "1GiB", *flags, "--json"]
    result = CliRunner().invoke(app, argv)
    assert result.exit_code == 0, result.output
    planned = json.loads(result.stdout)["kv_cache"]
    figures = (planned["tokens"], planned["max_model_len"], f"{planned['max_concurrency']:.2f}")
    assert said == (f"{figures[0]:,}", f"{figures[1]:,}", figures[2])
