"""What the planner says to the cases that vLLM is asked."""

from typing import Any

from gateway.planner import config, hardware
from gateway.planner.kv_cache import KVCache
from gateway.planner.plan import Options, make
from gateway.planner.shape import Shape
from gateway.planner.source import Model
from gateway.planner.weights import estimate
from tests.planner.cases import Case
from tests.planner.configs import CONFIGS


def shape(name: str) -> Shape:
    """The shape of one of the configs."""
    return config.read(CONFIGS[name], name)


def cache(case: Case) -> KVCache:
    """The cache as `gateway plan` computes it, its options made of the case."""
    found = shape(case.config)
    options = Options(
        max_model_len=case.max_model_len or None,
        max_num_batched_tokens=case.max_num_batched_tokens,
        kv_cache_bytes=case.kv_cache_bytes,
        kv_cache_dtype=case.kv_cache_dtype,
        block_size=case.block_size,
        prefix_caching=case.prefix_caching,
        speculative_tokens=case.speculative_tokens,
        tensor_parallel_size=case.tensor_parallel_size,
    )
    machine = None if case.cuda else hardware.find("cpu")
    return make(Model(case.config, case.config, found, estimate(found)), machine, options).cache


def figures(found: KVCache) -> dict[str, Any]:
    """What vLLM's answer holds of it."""
    return {
        "num_blocks": found.num_blocks,
        "block_size": found.block_size,
        "groups": len(found.groups),
        "tokens": found.tokens,
        "max_concurrency": found.max_concurrency,
    }
