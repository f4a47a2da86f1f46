"""The combinations that the planner and vLLM both compute: each config with lengths, sizes and flags."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from tests.planner.bare_configs import BARE
from tests.planner.configs import CONFIGS
from tests.planner.odd_configs import LONG, ODD

GIB = 2**30
LENGTHS = (4096, 32_768, 131_072)
SIZES = (int(6.01 * GIB), int(28.8 * GIB))


@dataclass(frozen=True, slots=True)
class Case:
    """One question. `cuda` tells which platform vLLM believes to be on; a length of 0 leaves it to vLLM."""

    config: str
    max_model_len: int
    kv_cache_bytes: int
    kv_cache_dtype: str = "auto"
    prefix_caching: bool = True
    block_size: int | None = None
    max_num_batched_tokens: int = 8192
    speculative_tokens: int = 0
    tensor_parallel_size: int = 1
    cuda: bool = True

    @property
    def name(self) -> str:
        """Its values in their order: a key for recordings, readable in a test's name."""
        changed = [
            f"{key}={value}"
            for key, value in asdict(self).items()
            if key not in ("config", "max_model_len", "kv_cache_bytes") and value != getattr(_PLAIN, key)
        ]
        return "-".join(
            [self.config, str(self.max_model_len), f"{self.kv_cache_bytes / GIB:.2f}GiB", *changed]
        )

    def question(self) -> dict[str, Any]:
        """What ask_vllm.py reads."""
        return {**asdict(self), "name": self.name, "config": CONFIGS[self.config]}


_PLAIN = Case("", 0, 0)


def _variants() -> list[Case]:
    """One flag changed at a time, where it changes something."""
    found = []
    for config in ("llama-gqa", "gemma4-26b", "gpt-oss-20b", "qwen3.5-35b", "nemotron-h", "deepseek-v2-lite"):
        case = Case(config, 32_768, SIZES[1])
        found += [
            replace(case, kv_cache_dtype="fp8"),
            replace(case, prefix_caching=False),
            replace(case, block_size=64),
            replace(case, max_num_batched_tokens=2048),
            replace(case, cuda=False, max_num_batched_tokens=2048),
        ]
        if config != "deepseek-v2-lite":
            found.append(replace(case, tensor_parallel_size=2))
    for config in ("llama-gqa", "qwen3.5-35b"):
        case = Case(config, 32_768, SIZES[1])
        found += [replace(case, kv_cache_dtype=f"{kind}_per_token_head") for kind in ("int8", "fp8", "int4")]
    found.append(Case("nemotron-h-16bit", 32_768, SIZES[1], cuda=False, max_num_batched_tokens=2048))
    for config in ("qwen3.5-35b", "nemotron-h"):
        found.append(replace(Case(config, 4096, SIZES[1]), cuda=False, prefix_caching=False))
    for config in ("nemotron-h-states", "nemotron-h-no-states", "nemotron-h-attention", "granite-4-states"):
        case = Case(config, 32_768, SIZES[1])
        found += [
            replace(case, kv_cache_dtype="fp8"),
            replace(case, prefix_caching=False),
            replace(case, block_size=64),
            replace(case, tensor_parallel_size=2),
            replace(case, cuda=False, max_num_batched_tokens=2048),
            replace(case, cuda=False, max_num_batched_tokens=2048, block_size=64),
        ]
    found += [Case("qwen3.5-mtp", 32_768, SIZES[1], speculative_tokens=count) for count in (1, 3)]
    found += [
        Case(config, 131_072, GIB // 2) for config in ("llama-gqa", "qwen3.5-27b", "gemma3", "granite-4")
    ]
    return found


def every() -> list[Case]:
    """All of them: at least 72, of every kind of cache."""
    whole = [name for name in CONFIGS if name not in ODD and name not in BARE]
    plain = [Case(config, length, size) for config in whole for length in LENGTHS for size in SIZES]
    asked = [config for config in ODD if config not in LONG]
    odd = [Case(config, 1024 if config == "gpt2" else 32_768, SIZES[1]) for config in asked]
    own = [Case(config, 0, SIZES[1]) for config in (*BARE, *LONG)]
    return plain + odd + own + _variants()


def few() -> list[Case]:
    """One of each kind of cache, for the run that takes seconds."""
    chosen = (
        "llama-gqa",
        "gemma4-26b",
        "gpt-oss-20b",
        "llama4",
        "qwen3.5-35b",
        "nemotron-h",
        "deepseek-v2-lite",
    )
    return [Case(config, 32_768, SIZES[1]) for config in chosen]
