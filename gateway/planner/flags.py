"""The flags of `vllm serve` for a plan, each with its reason and where its value comes from.

A reason ends with one of (computed …), (published by …) or (guess): what the shipped profiles promise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gateway.planner import backends, parsers
from gateway.planner.hardware import Hardware
from gateway.planner.kv_cache import KVCache
from gateway.planner.shape import Shape

Value = bool | int | float | str | list[str]
Part = Literal["named", "capacity", "special", "everywhere"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `part` is the section of a profile that it stands in."""

    name: str
    value: Value
    reason: str
    part: Part = "capacity"


# Of those that FlashInfer reads, the types that another backend is chosen for, or none.
_FLASHINFER_TYPES = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})
# Whose reasons hold whoever chose the value.
_TELLING = frozenset(
    {
        "max-model-len", "enable-prefix-caching", "kv-cache-memory-bytes", "tensor-parallel-size",
        "speculative-config",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choices:
    """What the plan has decided, as far as flags depend on it. `said` are flags that the operator gave."""

    served_name: str
    repository: str
    hardware: Hardware | None
    utilization: float | None
    kv_cache_bytes: int | None
    max_num_seqs: int
    max_inflight: int
    said: frozenset[str] = frozenset()


def choose(shape: Shape, cache: KVCache, choices: Choices) -> list[Flag]:
    """All flags but those that are the same everywhere, in a profile's order."""
    found = [*_named(choices), *_capacity(shape, cache, choices), *_special(shape, cache, choices)]
    return [_given(flag) if flag.name in choices.said - _TELLING else flag for flag in found]


def _given(flag: Flag) -> Flag:
    return Flag(flag.name, flag.value, "Given on the command line. (guess)", flag.part)


def _named(choices: Choices) -> Iterator[Flag]:
    yield Flag("model", choices.repository, "The model that was planned for. (computed: as asked)", "named")
    if "/" in choices.repository and not choices.repository.startswith("/"):
        yield Flag(
            "revision",
            "main",
            "The newest at each download; a commit here keeps it as it is. (guess)",
            "named",
        )
    yield Flag(
        "served-model-name",
        choices.served_name,
        "The id in gateway.toml: callers, usage and metrics say one name. "
        "(computed: as in the gateway's file)",
        "named",
    )


def _capacity(shape: Shape, cache: KVCache, choices: Choices) -> Iterator[Flag]:
    engine = cache.engine
    if choices.kv_cache_bytes is not None:
        yield Flag(
            "kv-cache-memory-bytes", choices.kv_cache_bytes,
            "The cache's size, whatever else is free. vLLM's check at start still uses "
            "gpu-memory-utilization. (computed: as given)",
        )  # fmt: skip
    if choices.utilization is not None:
        yield Flag("gpu-memory-utilization", choices.utilization, _utilization_reason(choices.hardware))
    yield Flag(
        "max-model-len", engine.max_model_len,
        f"{cache.max_concurrency:.1f} requests of this length fit at once; the longest that fits is "
        f"{cache.longest:,}. "
        "(computed: by gateway plan)",
    )  # fmt: skip
    yield Flag(
        "max-num-seqs", choices.max_num_seqs,
        f"The blocks hold {cache.at_once(1500):,} requests of 1,500 tokens; vLLM's own choice is made for "
        "larger cards. (computed: by gateway plan)",
    )  # fmt: skip
    yield Flag(
        "max-num-batched-tokens", engine.max_num_batched_tokens,
        "vLLM's own choice for this much memory; said here because the KV cache depends on it. "
        "(published by vLLM: engine/arg_utils.py)",
    )  # fmt: skip
    yield Flag(
        "max-num-queued-reqs", 4 * choices.max_inflight,
        f"A valve behind the gateway's max_inflight ({choices.max_inflight}), which never closes first; "
        "n choices count n. (computed: 4 x max_inflight)",
    )  # fmt: skip
    yield Flag("enable-prefix-caching", engine.prefix_caching, _prefix_reason(shape, cache))
    yield Flag(
        "kv-cache-dtype", engine.kv_cache_dtype, "As the checkpoint says. (published by vLLM: the default)"
    )
    if engine.block_size:
        yield Flag("block-size", engine.block_size, "Tokens of a block before vLLM aligns it. (guess)")


def _utilization_reason(hardware: Hardware | None) -> str:
    if hardware is not None and hardware.unified:
        return (
            "The rest is the system's, since CPU and GPU share memory; at 0.70 hosts froze in profiling. "
            "(guess, under vllm-project/vllm#46307)"
        )
    return "What is over is for long prompts, which need memory that profiling has not seen. (guess)"


def _prefix_reason(shape: Shape, cache: KVCache) -> str:
    if not cache.engine.prefix_caching:
        return "Each prompt is computed whole, and a request takes fewer blocks. (computed: as asked)"
    hits = f" Hits end at multiples of {cache.block_size:,} tokens." if shape.aligning else ""
    return f"Chats repeat their beginning.{hits} (published by vLLM: on by default)"


def _special(shape: Shape, cache: KVCache, choices: Choices) -> Iterator[Flag]:
    engine = cache.engine
    if shape.vision:
        yield Flag(
            "language-model-only", True,
            "Text alone: the vision tower's memory is context. (published by vLLM: --help of the flag)",
            "special",
        )  # fmt: skip
    yield from _kernels(shape, engine.kv_cache_dtype, choices.hardware)
    if engine.tensor_parallel_size > 1:
        yield Flag(
            "tensor-parallel-size", engine.tensor_parallel_size,
            "Spread over so many cards. (computed: as asked)", "special",
        )  # fmt: skip
    if engine.speculative_tokens:
        yield Flag(
            "speculative-config",
            f'{{"method": "mtp", "num_speculative_tokens": {engine.speculative_tokens}}}',
            "The model's own draft head; soak it first. (guess)", "special",
        )  # fmt: skip
    if found := parsers.of(shape.model_type, choices.repository):
        if found.reasoning:
            yield Flag(
                "reasoning-parser", found.reasoning,
                "Thinking goes to `reasoning`, the answer to `content`. "
                "(published by vLLM: docs, reasoning outputs)",
                "special",
            )  # fmt: skip
        yield Flag(
            "enable-auto-tool-choice", True,
            "Tools that the model may choose by itself. (published by vLLM: docs, tool calling)", "special",
        )  # fmt: skip
        yield Flag(
            "tool-call-parser", found.tools,
            "The form that this kind of model writes. (published by vLLM: docs, tool calling)", "special",
        )  # fmt: skip


def _kernels(shape: Shape, kv_cache_dtype: str, hardware: Hardware | None) -> Iterator[Flag]:
    if hardware is None:
        return
    if hardware.cpu:
        yield Flag(
            "enforce-eager", True,
            "Nothing is compiled at start: it would take a compiler and a minute. (guess)", "special",
        )  # fmt: skip
    small_blackwell = hardware.capability is not None and hardware.capability[0] == 12
    method, experts = shape.quantization.method, shape.parameters.experts
    if small_blackwell and experts and method == "fp8":
        yield Flag(
            "moe-backend", "triton",
            "Other FP8 MoE kernels are missing on sm_12x. (published by vLLM: vllm-project/vllm#43507)",
            "special",
        )  # fmt: skip
    if small_blackwell and experts and method == "nvfp4":
        yield Flag(
            "moe-backend", "marlin",
            "Other NVFP4 kernels gave illegal instructions or garbage on sm_12x. "
            "(published by vLLM: vllm-project/vllm#38423 and #39825)", "special",
        )  # fmt: skip
    yield from _attention(shape, kv_cache_dtype, hardware)


def _attention(shape: Shape, kv_cache_dtype: str, hardware: Hardware) -> Iterator[Flag]:
    capability = hardware.capability or (0, 0)
    if kv_cache_dtype not in _FLASHINFER_TYPES or not _flashinfer(shape, kv_cache_dtype, capability):
        return
    if capability[0] == 12:
        yield Flag(
            "attention-backend", "flashinfer",
            "Its kernel decodes an fp8 cache on sm_12x. (published by vLLM: recipe, for a 5090)", "special",
        )  # fmt: skip
    elif (8, 0) <= capability < (8, 9):
        yield Flag(
            "attention-backend", "flashinfer",
            f"Triton has no fp8e4nv on sm_{capability[0]}{capability[1]}; FlashInfer reads an fp8 cache "
            "there. (published by vLLM: #26431 and v1/attention/backends)", "special",
        )  # fmt: skip


def _flashinfer(shape: Shape, kv_cache_dtype: str, capability: tuple[int, int]) -> bool:
    """Whether vLLM would start with it: its `FlashInferBackend` refuses the rest, and does not fall back."""
    if shape.model_type.startswith("gemma") and shape.vision:
        return False  # images are attended to from both sides, which it cannot
    return backends.flashinfer_takes(shape, kv_cache_dtype, capability)
