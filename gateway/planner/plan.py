"""Puts a plan together: a model on a machine, with what the operator has decided and what follows."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.planner import flags, kv_cache, memory, refusals, risks, speed
from gateway.planner.flags import Choices, Flag
from gateway.planner.hardware import Hardware
from gateway.planner.kv_cache import KVCache
from gateway.planner.layers import Engine
from gateway.planner.memory import Memory
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Shape
from gateway.planner.source import Model
from gateway.planner.speed import Step

COMFORTABLE_TOKENS_PER_SECOND = 40.0
# Four requests of full length at once: less is one caller's machine.
_WANTED_CONCURRENCY = 4
_LENGTHS = (262_144, 131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
# A chat with its answer. Less is planned where it is asked for, and never chosen.
SHORTEST_TOKENS = _LENGTHS[-1]


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator decided; None leaves it to the plan. `said` are the flags given by name."""

    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_bytes: int | None = None
    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    prefix_caching: bool = True
    speculative_tokens: int = 0
    tensor_parallel_size: int = 1
    said: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Alternative:
    """The same with one thing changed."""

    change: str
    cache: KVCache


@dataclass(frozen=True, slots=True)
class Plan:
    """All that was found. `ceiling` and `steps` need a bandwidth, `memory` a machine."""

    model: Model
    hardware: Hardware | None
    options: Options
    cache: KVCache
    memory: Memory | None
    ceiling: float | None
    steps: tuple[Step, ...]
    max_num_seqs: int
    max_inflight: int
    flags: tuple[Flag, ...] = ()
    risks: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = field(default=(), kw_only=True)

    @property
    def fits(self) -> bool:
        """Whether vLLM would start: weights and cache fit, and one request of full length in it."""
        if not self.cache.starts or self.too_many_seqs or self.too_long:
            return False
        if self.memory is None:
            return True
        if self.options.kv_cache_bytes is None:
            return self.memory.left_bytes > 0
        # A cache of a given size does not heed the utilisation.
        beyond = self.memory.total_bytes - self.memory.requested_bytes
        return self.memory.left_bytes + beyond >= self.cache.bytes

    @property
    def too_many_seqs(self) -> bool:
        """Whether states have too few blocks for a start: one for each sequence of a CUDA graph."""
        graphs = self.hardware is None or not self.hardware.cpu
        return bool(self.model.shape.states) and graphs and self.max_num_seqs > self.cache.num_blocks

    @property
    def too_long(self) -> bool:
        """Whether vLLM would refuse the length, as it does what the config does not promise."""
        return self.cache.engine.max_model_len > self.model.shape.max_model_len

    @property
    def comfortable(self) -> bool | None:
        """Weights under a third of memory and a ceiling above 40 tokens/s; None without a machine."""
        if self.memory is None or self.ceiling is None:
            return None
        third = self.memory.weights_bytes * 3 < self.memory.total_bytes
        return third and self.ceiling > COMFORTABLE_TOKENS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Refused:
    """A model of which no plan can be made with these options, and why."""

    model: Model
    why: str


def make(model: Model, hardware: Hardware | None, options: Options, bandwidth: float | None = None) -> Plan:
    """The plan of a model. Raises PlanProblem if there is neither a machine nor a size of the cache."""
    if hardware is None and options.kv_cache_bytes is None:
        raise PlanProblem(
            "--hardware is missing: name the machine, as in --hardware spark, describe it, as in --memory "
            "24GiB --bandwidth 936GB/s, or give the cache's size, as in --kv-cache-bytes 6GiB."
        )
    cache, divided = _planned(model, hardware, options)
    engine = cache.engine
    seqs = options.max_num_seqs or min(_seqs(model.shape, hardware, cache), engine.max_num_batched_tokens)
    rate = hardware.bandwidth_bytes_per_second if hardware else bandwidth
    plan = Plan(
        model,
        hardware,
        options,
        cache,
        divided,
        speed.ceiling(rate * options.tensor_parallel_size, model.weights.active_bytes) if rate else None,
        speed.steps(rate, model.shape, engine, model.weights) if rate else (),
        seqs,
        max(1, min(seqs, cache.at_once(speed.REQUEST_TOKENS))),
        alternatives=_alternatives(model, hardware, options, cache),
    )
    return replace(
        plan,
        flags=tuple(flags.choose(model.shape, cache, _choices(plan))),
        risks=(
            *risks.known(hardware, model.shape, cache, seqs if plan.too_many_seqs else None),
            *risks.of_weights(model.shape, model.weights),
        ),
    )


def _planned(model: Model, hardware: Hardware | None, options: Options) -> tuple[KVCache, Memory | None]:
    """The cache and how memory is divided, at the length that was asked for, else at the best that fits."""
    if options.max_model_len is None and options.kv_cache_bytes is None:
        options = replace(options, max_model_len=_length(model, hardware, options))
    return _at(model, hardware, options)


def _at(model: Model, hardware: Hardware | None, options: Options) -> tuple[KVCache, Memory | None]:
    """The same at the length of the options, else at what vLLM takes: on a CPU, memory depends on it too."""
    engine = _engine(model.shape, hardware, options)
    refusals.check(model.shape, engine, hardware, options.max_num_seqs)
    divided = _memory(model, hardware, options, engine)
    given = options.kv_cache_bytes
    return kv_cache.compute(model.shape, engine, _left(divided) if given is None else given), divided


def _engine(shape: Shape, hardware: Hardware | None, options: Options) -> Engine:
    """How vLLM is run there: what differs between CUDA and CPU, and MLA's blocks, as its platforms decide."""
    length = options.max_model_len or shape.unasked_model_len
    batched = options.max_num_batched_tokens or (hardware.default_batched_tokens if hardware else 2048)
    engine = Engine(
        length, batched, options.kv_cache_dtype, options.prefix_caching, options.block_size,
        options.speculative_tokens, options.tensor_parallel_size,
    )  # fmt: skip
    if shape.attention_free:
        engine = replace(engine, prefix_caching=False)
    if hardware is not None and hardware.cpu:
        return replace(_on_cpu(shape, engine), float32_states=hardware.avx512_bf16)
    fp8 = engine.kv_cache_dtype.startswith("fp8")
    hopper = hardware is not None and hardware.capability is not None and hardware.capability[0] == 9
    if shape.latent and fp8 and hopper:
        return replace(
            engine, default_block=64, kernel_block=64
        )  # FlashMLA; FlashAttention's has no fp8 cache
    return engine


def _on_cpu(shape: Shape, engine: Engine) -> Engine:
    """`platforms/cpu.py`: larger blocks, no asynchronous scheduling; MLA without prefix caching or chunks."""
    if not shape.model_attention:  # vLLM's platform asks the attention backend for its block
        return replace(engine, batches=1)
    if not shape.latent:
        return replace(engine, default_block=128, kernel_block=32, batches=1)
    batched = max(engine.max_model_len, 2048)
    return replace(engine, block_size=16, batches=1, prefix_caching=False, max_num_batched_tokens=batched)


def _memory(model: Model, hardware: Hardware | None, options: Options, engine: Engine) -> Memory | None:
    if hardware is None:
        return None
    return memory.divide(
        hardware,
        model.shape,
        model.weights,
        utilization=options.gpu_memory_utilization or hardware.utilization,
        batched_tokens=engine.max_num_batched_tokens,
        seqs=options.max_num_seqs or hardware.max_num_seqs,
        ranks=options.tensor_parallel_size,
    )


def _left(divided: Memory | None) -> int:
    return max(0, divided.left_bytes) if divided else 0


def _length(model: Model, hardware: Hardware | None, options: Options) -> int:
    """The longest usual length of which four requests fit at once; else the longest of which one does.

    Of a cache that does not hold the shortest of them, that one, with which vLLM does not start.
    """
    most = model.shape.unasked_model_len
    found = 0
    for length in (most, *(one for one in _LENGTHS if one < most)):
        cache, _ = _at(model, hardware, replace(options, max_model_len=length))
        if cache.starts and cache.max_concurrency >= _WANTED_CONCURRENCY:
            return length
        if cache.starts and length in _LENGTHS:
            found = found or length
    return found or min(most, SHORTEST_TOKENS)


def _seqs(shape: Shape, hardware: Hardware | None, cache: KVCache) -> int:
    """What the blocks hold of 1,500-token requests, to a power of two, up to what the machine serves well."""
    most = hardware.max_num_seqs if hardware else 256
    held = max(1, cache.at_once(speed.REQUEST_TOKENS))
    if shape.hybrid:
        held = max(1, min(held, cache.num_blocks))
    return int(min(most, 1 << (held.bit_length() - 1)))


def _choices(plan: Plan) -> Choices:
    options, hardware = plan.options, plan.hardware
    utilization = options.gpu_memory_utilization
    # Beside a cache of a given size, too: the check at start takes 0.92 where nothing is said.
    if utilization is None and hardware is not None and not (hardware.cpu and options.kv_cache_bytes):
        utilization = hardware.utilization
    return Choices(
        served_name(plan.model.name),
        _served_from(plan.model),
        hardware,
        utilization,
        options.kv_cache_bytes,
        plan.max_num_seqs,
        plan.max_inflight,
        options.said,
    )


def _served_from(model: Model) -> str:
    """A hub id, or the whole path of a folder, which an engine elsewhere finds too."""
    folder = Path(model.repository)
    ours = folder.resolve().name == model.name and (folder / "config.json").is_file()
    return str(folder.resolve()) if ours else model.repository


def served_name(name: str) -> str:
    """The id that callers write: the last part of a hub id, in small letters, and what the gateway takes."""
    own = name.rstrip("/").rsplit("/", 1)[-1].lower()
    return "".join(one if one.isprintable() and one != "*" else "-" for one in own).strip() or "model"


def _alternatives(
    model: Model, hardware: Hardware | None, options: Options, cache: KVCache
) -> tuple[Alternative, ...]:
    """What twice the context, an fp8 cache, prefix caching off, and shorter steps would change.

    Each is what a plan of this length with that option would have, and none that vLLM would refuse.
    """
    found = []
    for name, one in _changed(model.shape, replace(options, max_model_len=cache.engine.max_model_len), cache):
        try:
            found.append(Alternative(name, _at(model, hardware, one)[0]))
        except PlanProblem:
            continue
    return tuple(found)


def _changed(shape: Shape, options: Options, cache: KVCache) -> Iterator[tuple[str, Options]]:
    engine = cache.engine
    if engine.max_model_len * 2 <= shape.max_model_len:
        yield "max-model-len doubled", replace(options, max_model_len=engine.max_model_len * 2)
    if engine.kv_cache_dtype == "auto" and not shape.only_states:
        yield "kv-cache-dtype fp8", replace(options, kv_cache_dtype="fp8")
    if engine.prefix_caching:
        yield "prefix caching off", replace(options, prefix_caching=False)
    if any(getattr(layer, "window", None) for layer in shape.layers) and engine.max_num_batched_tokens > 2048:
        # A window keeps what is under way besides: of long steps more than of the window itself.
        yield "max-num-batched-tokens 2,048", replace(options, max_num_batched_tokens=2048)
