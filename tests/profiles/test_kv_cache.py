"""The KV cache figures that the profiles call computed are what vLLM computes."""

import re

import pytest

from deploy.local import engine
from deploy.local.engine import ServedModel
from tests.profiles import files
from tests.profiles.kv_cache import KVCache, LinearLayers, Shape, size

QWEN_35B = Shape(layers=10, kv_heads=2, head_dim=256, linear=LinearLayers(30, key_heads=16, value_heads=32))
QWEN_27B = Shape(layers=16, kv_heads=4, head_dim=256, linear=LinearLayers(48, key_heads=16, value_heads=48))
QWEN_8B = Shape(layers=36, kv_heads=8, head_dim=128)
SMOLLM2 = Shape(layers=30, kv_heads=3, head_dim=64)
SHAPES = {
    "spark": QWEN_35B,
    "spark-batch": QWEN_35B,
    "rtx5090": QWEN_35B,
    "rtx3090": QWEN_27B,
    "rtx3090-shared": QWEN_8B,
    "cpu": SMOLLM2,
}
FIGURES = re.compile(
    r"KV cache \(computed\): (?P<gib>[\d.]+) GiB -> (?P<blocks>[\d,]+) blocks of (?P<block_tokens>[\d,]+) "
    r"tokens, (?P<per_request>[\d,]+) for a full-length request, (?P<concurrency>[\d.]+) of those at once; "
    r"vLLM's log says (?P<tokens>[\d,]+) tokens"
)


@pytest.mark.parametrize(
    ("gib", "max_model_len", "element_bytes", "tokens", "concurrency"),
    [
        (28.8, 4096, 2, 585_318, 142.9),  # a published measurement on a DGX Spark, 2026
        (6.01, 131_072, 1, 569_878, 4.35),  # noonghunna/club-3090#652: an RTX 5090, fp8 cache
        (5.98, 131_072, 1, 567_978, 4.33),  # noonghunna/club-3090#612: the same card, another start
    ],
)
def test_published_figures(
    gib: float, max_model_len: int, element_bytes: int, tokens: int, concurrency: float
) -> None:
    """What three engines logged on their owners' machines comes out to the token."""
    cache = size(QWEN_35B, gib, max_model_len, element_bytes=element_bytes)
    assert cache.tokens == tokens
    assert round(cache.concurrency, 2) == concurrency


def test_published_block_of_the_dense_hybrid() -> None:
    """noonghunna/club-3090#1047: 27B with an fp8 cache, "Setting attention block size to 1568 tokens"."""
    assert size(QWEN_27B, 1, 4096, element_bytes=1).block_tokens == 1568


def figures(name: str) -> re.Match[str]:
    """The one line of figures that a profile quotes."""
    text = " ".join(
        line.removeprefix("#").strip() for line in files.serve_file(name).read_text().splitlines()
    )
    [found] = FIGURES.finditer(text)
    return found


def computed(name: str, gib: float) -> KVCache:
    """What the profile's own flags make of so much memory."""
    flags = files.serve(name)
    assert flags["enable-prefix-caching"] is True
    return size(
        SHAPES[name],
        gib,
        flags["max-model-len"],
        element_bytes=1 if flags.get("kv-cache-dtype") == "fp8" else 2,
        block=128 if name == "cpu" else 16,
    )


@pytest.mark.parametrize("name", files.NAMES)
def test_the_figures_of_a_profile(name: str) -> None:
    """Each number of the line follows from the memory that it begins with and the profile's flags."""
    found = figures(name)
    cache = computed(name, float(found["gib"]))
    quoted = [
        int(found[part].replace(",", "")) for part in ("blocks", "block_tokens", "per_request", "tokens")
    ]
    assert quoted == [cache.blocks, cache.block_tokens, cache.blocks_per_request, cache.tokens]
    assert float(found["concurrency"]) == round(cache.concurrency, 1)


@pytest.mark.parametrize("name", files.NAMES)
def test_one_full_request_fits(name: str) -> None:
    """vLLM starts only if a full-length request and one block more fit; a hybrid needs a block a sequence."""
    cache = computed(name, float(figures(name)["gib"]))
    assert cache.blocks > cache.blocks_per_request
    assert cache.blocks >= files.serve(name)["max-num-seqs"]


@pytest.mark.parametrize(
    ("name", "at_once", "tokens"),
    [("spark", 64, 26_400), ("spark-batch", 204, 1056), ("rtx3090", 4, 9408), ("rtx3090-shared", 8, 5904)],
)
def test_shares_of_a_full_engine(name: str, at_once: int, tokens: int) -> None:
    """The context that each of so many requests has at once, as the comments say it."""
    cache = computed(name, float(figures(name)["gib"]))
    states = cache.blocks_per_request - -(-files.serve(name)["max-model-len"] // cache.block_tokens)
    assert (cache.blocks // at_once - states) * cache.block_tokens == tokens


def test_memory_of_the_spark() -> None:
    """40.9 GiB are the 28.8 GiB of spark-batch and a tenth of the machine."""
    assert int((28.8 + (0.60 - 0.50) * 121.7) * 10) / 10 == float(figures("spark")["gib"])


def test_memory_of_the_5090() -> None:
    """5.3 GiB are what was measured at 0.92, less what 0.90 takes away."""
    taken = (0.92 - files.serve("rtx5090")["gpu-memory-utilization"]) * 31.4
    assert int((6.01 - taken) * 10) / 10 == float(figures("rtx5090")["gib"])


def test_the_cpu_profile_serves_as_the_local_mode_does() -> None:
    """The same memory for the cache and the same number of sequences."""
    flags = files.serve("cpu")
    local = engine.arguments(ServedModel("smollm2-135m", files.ROOT), 8000)
    assert flags["kv-cache-memory-bytes"] == int(engine.settings({})["VLLM_CPU_KVCACHE_SPACE"]) * 2**30
    assert str(flags["max-num-seqs"]) == local[local.index("--max-num-seqs") + 1]
    assert flags["enforce-eager"] is ("--enforce-eager" in local)
