"""A plan as JSON: the shape that scripts rely on, with what each figure rests on beside it."""

from typing import Any

from gateway.planner.kv_cache import KVCache
from gateway.planner.plan import Plan, Refused
from gateway.planner.speed import REQUEST_TOKENS


def of(plan: Plan) -> dict[str, Any]:
    """The whole plan. `basis` tells of each figure whether it was computed, estimated, published or given."""
    weights = plan.model.weights
    return {
        "model": plan.model.name,
        "repository": plan.model.repository,
        "hardware": plan.hardware.name if plan.hardware else None,
        "weights": {
            "bytes": weights.bytes,
            "active_bytes": weights.active_bytes,
            "source": weights.source,
            "parameters": plan.model.shape.parameters.total,
            "active_parameters": plan.model.shape.parameters.active,
        },
        "memory": _memory(plan),
        "kv_cache": kv_cache(plan.cache),
        "speed": _speed(plan),
        "fits": plan.fits,
        "comfortable": plan.comfortable,
        "max_num_seqs": plan.max_num_seqs,
        "max_inflight": plan.max_inflight,
        "flags": [{"flag": f"--{one.name}", "value": one.value, "reason": one.reason} for one in plan.flags],
        "risks": list(plan.risks),
        "alternatives": [
            {"change": one.change, "kv_cache": kv_cache(one.cache)} for one in plan.alternatives
        ],
        "basis": basis(plan),
    }


def refused(one: Refused) -> dict[str, Any]:
    """A model of the table of which no plan can be made."""
    model = one.model
    return {"model": model.name, "repository": model.repository, "fits": False, "refused": one.why}


def kv_cache(cache: KVCache) -> dict[str, Any]:
    """The cache as vLLM will log it."""
    return {
        "bytes": cache.bytes,
        "block_size": cache.block_size,
        "num_blocks": cache.num_blocks,
        "blocks_per_request": cache.blocks_per_request,
        "tokens": cache.tokens,
        "max_concurrency": cache.max_concurrency,
        "max_model_len": cache.engine.max_model_len,
        "longest_max_model_len": cache.longest,
        "bytes_per_block": cache.bytes_a_block,
        "starts": cache.starts,
        "groups": [
            {
                "kind": one.kind,
                "layers": one.layers,
                "block_size": one.block_tokens,
                "bytes": one.bytes_a_block,
            }
            for one in cache.groups
        ],
    }


def basis(plan: Plan) -> dict[str, str]:
    """What each figure rests on."""
    weights = plan.model.weights.basis
    given = plan.options.kv_cache_bytes is not None
    return {
        "weights.bytes": weights,
        "weights.active_bytes": "computed" if weights == "computed" else "estimated",
        "kv_cache.bytes": "given" if given else "estimated",
        "kv_cache": "computed" if given else "computed from an estimate",
        "memory": "estimated",
        "speed.single_stream_tokens_per_second": "computed" if weights == "computed" else "estimated",
        "speed.batches": "estimated",
    }


def _memory(plan: Plan) -> dict[str, Any] | None:
    divided = plan.memory
    if divided is None:
        return None
    return {
        "total_bytes": divided.total_bytes,
        "requested_bytes": divided.requested_bytes,
        "weights_bytes": divided.weights_bytes,
        "activation_bytes": divided.activation_bytes,
        "cuda_graph_bytes": divided.graphs_bytes,
        "library_bytes": divided.libraries_bytes,
        "left_bytes": divided.left_bytes,
    }


def _speed(plan: Plan) -> dict[str, Any]:
    return {
        "single_stream_tokens_per_second": plan.ceiling,
        "request_tokens": REQUEST_TOKENS,
        "batches": [
            {
                "batch": one.batch,
                "tokens_per_second": one.tokens_per_second,
                "each_tokens_per_second": one.each_tokens_per_second,
            }
            for one in plan.steps
        ],
    }
