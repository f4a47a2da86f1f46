"""What vLLM refuses whatever memory there is: values that do not go together, or not with the model."""

from gateway.planner.layers import Engine
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Shape


def check(shape: Shape, engine: Engine, max_num_seqs: int | None) -> None:
    """Raises PlanProblem, naming the option and a value that would do."""
    _blocks(engine)
    _ranks(shape, engine.tensor_parallel_size)
    _cache_type(shape, engine)
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


def _cache_type(shape: Shape, engine: Engine) -> None:
    """`VllmConfig.validate_nvfp4_kv_cache_with_mla`."""
    own = shape.quantization.kv_cache_dtype
    named = own if engine.kv_cache_dtype == "auto" else engine.kv_cache_dtype
    if shape.latent and named == "nvfp4":
        raise PlanProblem(
            "--kv-cache-dtype nvfp4 does not go with multi-head latent attention, and vLLM refuses it: "
            "take fp8."
        )


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
