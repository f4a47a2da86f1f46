"""A shipped profile with what an operator said beside it: its own values, and what follows from theirs."""

from dataclasses import replace
from typing import Any

from gateway.planner.flags import Flag
from gateway.planner.hardware import Hardware
from gateway.planner.plan import Options, Plan, make
from gateway.planner.shipped import Shipped
from gateway.planner.source import Model
from gateway.planner.units import size_bytes

# Flags whose value or reason rests on another one's.
_FOLLOWING = {
    "kv-cache-dtype": ("enable-prefix-caching", "attention-backend"),
    "block-size": ("enable-prefix-caching",),
    "speculative-config": ("enable-prefix-caching",),
    "tensor-parallel-size": ("enable-prefix-caching",),
}
_PARTS = ("named", "capacity", "special")


def make_shipped(model: Model, hardware: Hardware, options: Options, profile: Shipped) -> Plan:
    """The plan of a shipped profile: its own values, but for those that the operator gave by name."""
    said = profile.value

    def own(flag: str, given: Any) -> Any:
        return given if flag in options.said else said(flag)

    own_options = replace(
        options,
        max_model_len=own("max-model-len", options.max_model_len),
        max_num_seqs=own("max-num-seqs", options.max_num_seqs),
        max_num_batched_tokens=own("max-num-batched-tokens", options.max_num_batched_tokens),
        gpu_memory_utilization=own("gpu-memory-utilization", options.gpu_memory_utilization),
        kv_cache_dtype=own("kv-cache-dtype", options.kv_cache_dtype) or "auto",
        prefix_caching=own("enable-prefix-caching", options.prefix_caching),
        kv_cache_bytes=options.kv_cache_bytes or _cache_bytes(model, hardware, options, profile),
    )
    plan = make(model, hardware, own_options)
    if not options.said:
        return replace(plan, flags=profile.flags, max_inflight=profile.gateway["max_inflight"])
    inflight = plan.max_inflight
    if "max-num-seqs" not in options.said:
        inflight = min(inflight, profile.gateway["max_inflight"])
    return replace(plan, flags=_flags(plan, profile, inflight), max_inflight=inflight)


def _cache_bytes(model: Model, hardware: Hardware, options: Options, profile: Shipped) -> int:
    """What the profile's figures are computed from, with what another share, or more cards, give or take."""
    size = size_bytes(profile.kv_cache, "kv_cache")
    size += model.weights.bytes - model.weights.bytes // options.tensor_parallel_size
    own = profile.value("gpu-memory-utilization")
    if options.gpu_memory_utilization is not None and own is not None:
        size += int((options.gpu_memory_utilization - own) * hardware.memory_bytes)
    return max(0, size)


def _flags(plan: Plan, profile: Shipped, inflight: int) -> tuple[Flag, ...]:
    """The profile's flags, with those in their place that were said or follow, and new ones in their part."""
    said = plan.options.said
    changed = {*said, *(flag for one in said for flag in _FOLLOWING.get(one, ()))}
    if inflight != profile.gateway["max_inflight"]:
        changed.add("max-num-queued-reqs")
    ruled = {flag.name: flag for flag in plan.flags if flag.name in changed}
    if "max-num-queued-reqs" in ruled and inflight != plan.max_inflight:
        del ruled["max-num-queued-reqs"]
    kept = [ruled.pop(one.name, one) for one in profile.flags if not _ended(one, plan, changed)]
    return tuple(sorted([*kept, *ruled.values()], key=lambda flag: _PARTS.index(flag.part)))


def _ended(flag: Flag, plan: Plan, changed: set[str]) -> bool:
    """Whether a flag of the profile was for what the operator said otherwise."""
    return flag.name in changed and flag.name not in {one.name for one in plan.flags}
