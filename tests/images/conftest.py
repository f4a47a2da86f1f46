"""A hub with one small model, and a download of it that has not begun."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.downloading import Download, engine_python
from tests.images.hub import Hub, Model


def shard(seed: int, size: int = 300_000) -> bytes:
    """Weights that no other shard has."""
    return bytes((seed * 7 + place * place) % 251 for place in range(1000)) * (size // 1000)


SHARDS = {f"model-0000{n}-of-00002.safetensors": shard(n) for n in (1, 2)}
BESIDE = {
    "config.json": b'{"model_type": "tiny"}',
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {f"w{n}": name for n, name in enumerate(SHARDS)}}
    ).encode(),
}
NEEDED = BESIDE | SHARDS
# huggingface_hub writes pieces of 10 MiB: two of them, and a rest.
HUGE = "model.safetensors"
PIECES = 2 * 10 * 1024 * 1024
HUGE_FILES = {"config.json": b"{}", "tokenizer.json": b"{}", HUGE: shard(5, 24_000_000)}
# The same weights in other forms, and what no server reads.
REST = {
    "pytorch_model.bin": shard(3),
    "original/model.safetensors": shard(4),
    "README.md": b"# Tiny",
    "picture.png": b"png",
}


@pytest.fixture(scope="session")
def python() -> Path:
    """The engine's."""
    return engine_python()


@pytest.fixture
def hub() -> Iterator[Hub]:
    """It knows acme/tiny, the same behind a gate as acme/gated, and acme/huge."""
    files = NEEDED | REST
    models = {
        "acme/tiny": Model(files),
        "acme/gated": Model(files, gated=True),
        "acme/huge": Model(HUGE_FILES),
    }
    with Hub(models) as running:
        yield running


@pytest.fixture
def download(tmp_path: Path, python: Path, hub: Hub) -> Download:
    """Of acme/tiny, at its commit, into an empty cache."""
    return Download(tmp_path, python, hub)
