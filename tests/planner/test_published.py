"""Figures that others have published come out of the planner."""

from dataclasses import replace

import pytest

from gateway.planner import catalogue, hardware, kv_cache, speed
from gateway.planner.layers import Engine
from gateway.planner.plan import Options, make
from gateway.planner.shape import Shape
from gateway.planner.source import find

GIB = 2**30
ARTICLE = Engine(max_model_len=4096, max_num_batched_tokens=8192)


@pytest.fixture
def qwen() -> Shape:
    """Qwen3.5-35B-A3B."""
    entry = catalogue.find("Qwen/Qwen3.5-35B-A3B-FP8")
    assert entry is not None
    return entry.shape


@pytest.mark.parametrize(
    ("changed", "gib", "blocks", "block", "per_request", "concurrency"),
    [
        ({}, 28.8, 1429, 1056, 10, 142.9),  # a published measurement on a DGX Spark
        ({"kv_cache_dtype": "fp8"}, 28.8, 1440, 2096, 8, 180.0),
        ({"prefix_caching": False}, 28.8, 1429, 1056, 7, 204.1),
        ({"max_model_len": 32_768}, 28.8, 1429, 1056, 38, 37.6),
        # noonghunna/club-3090#652 and #612: RTX 5090s
        ({"max_model_len": 131_072, "kv_cache_dtype": "fp8"}, 6.01, 300, 2096, 69, 4.3),
    ],
)
def test_the_article(
    qwen: Shape,
    changed: dict[str, object],
    gib: float,
    blocks: int,
    block: int,
    per_request: int,
    concurrency: float,
) -> None:
    """Blocks, their size, those of a request and requests at once, with each of the published settings."""
    found = kv_cache.compute(qwen, replace(ARTICLE, **changed), int(gib * GIB))  # type: ignore[arg-type]
    assert (found.num_blocks, found.block_size, found.blocks_per_request) == (blocks, block, per_request)
    assert round(found.max_concurrency, 1) == concurrency


@pytest.mark.parametrize(
    ("changed", "gib", "tokens"),
    [
        ({}, 28.8, 585_318),
        ({"max_model_len": 131_072, "kv_cache_dtype": "fp8"}, 6.01, 569_878),
        ({"max_model_len": 131_072, "kv_cache_dtype": "fp8"}, 5.98, 567_978),
    ],
)
def test_tokens_in_logs(qwen: Shape, changed: dict[str, object], gib: float, tokens: int) -> None:
    """What three engines logged on their owners' machines comes out to the token."""
    assert kv_cache.compute(qwen, replace(ARTICLE, **changed), int(gib * GIB)).tokens == tokens  # type: ignore[arg-type]


def test_a_published_block_of_a_dense_hybrid() -> None:
    """noonghunna/club-3090#1047: 27B with an fp8 cache, "Setting attention block size to 1568 tokens"."""
    entry = catalogue.find("qwen3.6-27b-int4")
    assert entry is not None
    assert kv_cache.compute(entry.shape, replace(ARTICLE, kv_cache_dtype="fp8"), GIB).block_size == 1568


@pytest.mark.parametrize(
    ("dtype", "tokens", "blocks"),
    [("fp8", 91_022, 75), ("fp8", 135_926, 112), ("fp8", 152_917, 126), ("auto", 76_458, 112)],
)
def test_logs_of_a_dense_hybrid(dtype: str, tokens: int, blocks: int) -> None:
    """vLLM's recipe for Qwen3.8-27B, one RTX 5090 at 32K: each of its counts is one of whole blocks."""
    entry = catalogue.find("qwen3.8-27b-fp8")
    assert entry is not None
    engine = Engine(32_768, 2048, kv_cache_dtype=dtype)
    one = kv_cache.compute(entry.shape, engine, GIB).bytes_a_block
    found = kv_cache.compute(entry.shape, engine, blocks * one)
    assert (found.num_blocks, found.tokens) == (blocks, tokens)


def test_the_articles_ceiling() -> None:
    """3B active weights at FP8 on 273 GB/s: 91 tokens/s, and the catalogue's entry says so on a Spark."""
    assert round(speed.ceiling(273e9, 3e9)) == 91
    plan = make(find("qwen3.5-35b-a3b-fp8"), hardware.find("spark"), Options())
    assert plan.ceiling is not None
    assert round(plan.ceiling) == 91
    assert plan.comfortable


def test_measured_speeds_are_under_the_ceiling() -> None:
    """Spark, FP8 without draft: 28 to 33; RTX 3090, Qwen3.6-27B INT4: under it without a draft head."""
    measured = {("qwen3.5-35b-a3b-fp8", "spark"): 33, ("qwen3.6-27b-int4", "rtx3090"): 40}
    for (model, machine), rate in measured.items():
        plan = make(find(model), hardware.find(machine), Options())
        assert plan.ceiling is not None
        assert plan.ceiling > rate
