"""What vLLM refuses whatever memory there is: values that do not go together, or not with the model."""

from gateway.planner import backends
from gateway.planner.hardware import Hardware
from gateway.planner.layers import CACHE_TYPES, LATENT_TYPES, Engine
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Shape

# What halves the cache first, then what is always there.
_INSTEAD = ("fp8", "int8_per_token_head")


def check(shape: Shape, engine: Engine, hardware: Hardware | None, max_num_seqs: int | None) -> None:
    """Raises PlanProblem, naming the option and a value that would do."""
    _blocks(engine)
    _ranks(shape, engine.tensor_parallel_size)
    _cache_type(shape, engine, hardware)
    if max_num_seqs is not None and max_num_seqs > engine.max_num_batched_tokens:  # config/scheduler.py
        raise PlanProblem(
            f"--max-num-seqs {max_num_seqs} is more than the {engine.max_num_batched_tokens} of "
            "--max-num-batched-tokens, and vLLM refuses that: lower the one or raise the other."
        )
    if engine.speculative_tokens and not shape.draft_layers:
        raise PlanProblem(
            f"--speculative-tokens {engine.speculative_tokens}: this model's config names no draft head of "
            "its own (mtp_num_hidden_layers or num_nextn_predict_layers): leave it out."
        )


def _blocks(engine: Engine) -> None:
    """Attention kernels take multiples of their own block (`get_supported_kernel_block_sizes`)."""
    size, unit = engine.block_size, engine.kernel_block
    if size is not None and size % unit:
        raise PlanProblem(f"--block-size {size} is no multiple of {unit}: take {-(-size // unit) * unit}.")


def _cache_type(shape: Shape, engine: Engine, hardware: Hardware | None) -> None:
    """`VllmConfig.validate_nvfp4_kv_cache_with_mla`, `_init_kv_cache_quant`, and what the backends take."""
    own = shape.quantization.kv_cache_dtype
    named = own if engine.kv_cache_dtype == "auto" else engine.kv_cache_dtype
    if named not in CACHE_TYPES or (named in LATENT_TYPES and not shape.latent):
        return  # the cache's own arithmetic says so
    if why := _why_not(shape, named, hardware):
        instead = _instead(shape, hardware)
        if engine.kv_cache_dtype == "auto":
            raise PlanProblem(
                f"The checkpoint asks for a KV cache in {own}: {own} does not go with {why}, and vLLM "
                f"refuses it: take --kv-cache-dtype {instead}."
            )
        raise PlanProblem(
            f"--kv-cache-dtype {named} does not go with {why}, and vLLM refuses it: take {instead}."
        )


def _why_not(shape: Shape, named: str, hardware: Hardware | None) -> str:
    """What such a cache does not go with; empty if vLLM takes it."""
    if named == "fp8_e5m2" and shape.quantization.cache_scales and not shape.only_states:
        return "a checkpoint that can hold the scales of an fp8 cache"
    if backends.take(shape, named, hardware):
        return ""
    model = "multi-head latent attention" if shape.latent else "this model's attention"
    if hardware is not None and hardware.cpu:
        return f"{model} on a CPU"
    if hardware is None or hardware.capability is None or not backends.take(shape, named, None):
        return model
    return f"{model} on sm_{hardware.capability[0]}{hardware.capability[1]}"


def _instead(shape: Shape, hardware: Hardware | None) -> str:
    """The smallest type that vLLM takes there; what the checkpoint asks for itself is not `auto`."""
    for named in _INSTEAD:
        if backends.take(shape, named, hardware):
            return named
    return "auto" if shape.quantization.kv_cache_dtype == "auto" else "bfloat16"


def _ranks(shape: Shape, ranks: int) -> None:
    """`ModelConfig.verify_with_parallel_config`, and what the layers assert when they are divided."""
    heads = {shape.query_heads} | {layer.heads for layer in shape.states}
    whole = {layer.kv_heads for layer in shape.layers if isinstance(layer, Attention)}
    if any(count % ranks for count in heads) or any(count % ranks and ranks % count for count in whole):
        counts = sorted(count for count in heads | whole if count)
        raise PlanProblem(
            f"--tensor-parallel-size {ranks} does not divide the model's heads "
            f"({', '.join(map(str, counts))}): take a power of two that does."
        )
