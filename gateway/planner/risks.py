"""What is known to go wrong with a kind of model on a kind of hardware, each with its mend."""

from gateway.planner import backends
from gateway.planner.hardware import Hardware
from gateway.planner.kv_cache import KVCache
from gateway.planner.shape import Shape
from gateway.planner.units import gb
from gateway.planner.weights import Weights, estimate

# What formats and their scales come to besides is far less.
_UNLIKE = 1.5


def known(hardware: Hardware | None, shape: Shape, cache: KVCache, too_many_seqs: int | None) -> list[str]:
    """All risks of this combination, the certain ones first; `too_many_seqs` are more than it has blocks."""
    found = _of_cache(shape, cache, too_many_seqs)
    if not shape.known:
        found.append(
            f"model_type {shape.model_type} was not compared with vLLM: its layers are taken as the config "
            "describes them. Compare with the log of a start."
        )
    if hardware is not None:
        found += _of_hardware(hardware, shape)
    return found


def of_weights(shape: Shape, weights: Weights) -> list[str]:
    """Whether the files are of another size than the config's model, as far as that can be counted."""
    counted = estimate(shape).bytes
    near = counted / _UNLIKE < weights.bytes < counted * _UNLIKE
    if near or weights.basis != "computed" or not shape.known:
        return []
    return [
        f"The files hold {gb(weights.bytes)} and the config describes {gb(counted)}: are they of one model, "
        "and of its type? vLLM makes float32 weights 16 bit."
    ]


def _of_cache(shape: Shape, cache: KVCache, too_many_seqs: int | None) -> list[str]:
    found = []
    if not cache.starts:
        can = f"lower --max-model-len to {cache.longest:,}" if cache.longest else "give it more memory"
        found.append(
            f"vLLM does not start: a request of {cache.engine.max_model_len:,} tokens takes "
            f"{cache.blocks_per_request:,} blocks, and {max(0, cache.num_blocks - 1):,} can be used: {can}."
        )
    if cache.engine.max_model_len > shape.max_model_len:
        found.append(
            f"max-model-len {cache.engine.max_model_len:,} is more than the model's {shape.max_model_len:,}: "
            "vLLM refuses it. Where positions are to be scaled, config.json says so."
        )
    elif cache.engine.max_model_len > shape.unasked_model_len:
        found.append(
            f"max-model-len {cache.engine.max_model_len:,} is more than the {shape.unasked_model_len:,} that "
            "vLLM takes by itself: beyond them the model has other rotary factors, which serve short "
            "requests worse."
        )
    if too_many_seqs is not None:
        found.append(
            f"vLLM does not start with CUDA graphs: max-num-seqs {too_many_seqs} is more than the "
            f"{cache.num_blocks:,} blocks: lower it."
        )
    if shape.aligning and cache.engine.prefix_caching:
        found.append(
            f"Hits of the prefix cache end at multiples of {cache.block_size:,} tokens: shorter common "
            "beginnings are computed anew (vllm#40696); --prefix-match-unit is finer."
        )
    if shape.hybrid and cache.engine.speculative_tokens:
        found.append(
            "Speculative decoding with linear layers and prefix caching has corrupted answers (vllm#43559, "
            "#50021): soak it first."
        )
    return found


def _of_hardware(hardware: Hardware, shape: Shape) -> list[str]:
    found = []
    method = shape.quantization.method
    if hardware.unified:
        found.append(
            "Memory is shared with the system: hosts froze at a utilisation of 0.70 (vllm#46307); keep it "
            "under, and switch swap off."
        )
        found.append(
            "After a download the page cache counts as taken: sync; echo 3 > /proc/sys/vm/drop_caches, if "
            "the start says that free memory is less than desired (vllm#48140)."
        )
    if hardware.capability and hardware.capability[0] == 12:
        found.append("DeepGEMM has no kernels for sm_12x: VLLM_USE_DEEP_GEMM=0.")
        if method == "nvfp4":
            found.append(
                "NVFP4 kernels other than Marlin gave illegal instructions or garbage on sm_12x (vllm#38423, "
                "#39825): moe-backend marlin."
            )
    if hardware.capability and hardware.capability < (8, 9):
        found.append(_without_fp8(hardware, hardware.capability, shape))
        if method in ("fp8", "nvfp4"):
            found.append(
                f"{method} weights run through Marlin here: they save memory, not time (vllm#45306)."
            )
    if hardware.name in ("rtx5090", "rtx3090", "rtx4090"):
        found.append(
            "A long prompt can need memory that profiling has not seen: if a request ends the engine, halve "
            "max-num-batched-tokens, then lower the utilisation by 0.03 (club-3090#487)."
        )
    return found


def _without_fp8(hardware: Hardware, capability: tuple[int, int], shape: Shape) -> str:
    """What a card before sm_89 has for an fp8 cache of this model, and in its place."""
    lacks = f"Triton has no fp8e4nv on sm_{capability[0]}{capability[1]} (vllm#26431): "
    if shape.latent:
        return f"{lacks}latent attention has no smaller cache than one of 16 bits here."
    if backends.take(shape, "fp8", hardware):
        return f"{lacks}an fp8 cache needs FlashInfer, or int8_per_token_head."
    return (
        f"{lacks}FlashInfer does not serve this model here, so an fp8 cache does not start; "
        "int8_per_token_head does."
    )
