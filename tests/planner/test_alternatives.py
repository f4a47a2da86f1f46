"""An alternative is the plan with that option, to the byte; and a length is chosen with what it changes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.planner import answer, config, hardware
from gateway.planner.plan import Options, make
from gateway.planner.source import Model, find
from gateway.planner.weights import estimate
from tests.planner.config_forms import latent

CHANGED: dict[str, Callable[[Options], Options]] = {
    "max-model-len doubled": lambda options: replace(options, max_model_len=(options.max_model_len or 0) * 2),
    "kv-cache-dtype fp8": lambda options: replace(options, kv_cache_dtype="fp8"),
    "prefix caching off": lambda options: replace(options, prefix_caching=False),
    "max-num-batched-tokens 2,048": lambda options: replace(options, max_num_batched_tokens=2048),
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}
LATENT = {
    **latent("deepseek_v2", "DeepseekV2ForCausalLM", 27),
    "hidden_size": 2048, "intermediate_size": 10_944, "moe_intermediate_size": 1408, "n_routed_experts": 64,
    "num_experts_per_tok": 6, "vocab_size": 102_400, "max_position_embeddings": 163_840,
    "quantization_config": AWQ,
}  # fmt: skip
CPU = replace(hardware.find("cpu"), memory_bytes=64 * 2**30, avx512_bf16=False)


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("glm-4.7-flash", "h100"),
        ("glm-4.7-flash", "rtx-pro-6000"),
        ("gpt-oss-20b", "rtx5090"),
        ("gpt-oss-20b", "h100"),
        ("qwen3-8b-awq", "rtx3090"),
        ("qwen3.5-35b-a3b-fp8", "spark"),
        ("gemma-4-26b-a4b-fp8", "spark"),
        ("nemotron-3-nano-30b-a3b-fp8", "h200"),
        ("smollm2-135m", "cpu"),
    ],
)
@pytest.mark.parametrize("length", [8192, None])
def test_an_alternative_is_that_plan(name: str, card: str, length: int | None) -> None:
    """Each of them, at the length of the plan that it stands in."""
    model, machine = find(name), hardware.find(card)
    length = length and min(length, model.shape.max_model_len)
    options = Options(max_model_len=length)
    found = make(model, machine, options)
    assert found.alternatives
    at = replace(options, max_model_len=found.cache.engine.max_model_len)
    for one in found.alternatives:
        other = make(model, machine, CHANGED[one.change](at))
        assert answer.kv_cache(one.cache) == answer.kv_cache(other.cache), one.change


def test_flashmlas_blocks_are_in_the_alternative() -> None:
    """On Hopper an fp8 cache of latent attention is of 64-token blocks, in the alternative too."""
    found = make(find("glm-4.7-flash"), hardware.find("h100"), Options(max_model_len=65_536))
    [fp8] = [one.cache for one in found.alternatives if one.change == "kv-cache-dtype fp8"]
    assert (found.cache.block_size, fp8.block_size) == (16, 64)


def test_no_alternative_that_vllm_refuses() -> None:
    """gpt-oss has no fp8 cache on a 3090, latent attention none on a CPU."""
    for name, card in (("gpt-oss-20b", "rtx3090"), ("glm-4.7-flash", "cpu")):
        found = make(find(name), hardware.find(card), Options(max_model_len=8192))
        assert "kv-cache-dtype fp8" not in {one.change for one in found.alternatives}


def test_latent_attention_on_a_cpu_fits_at_the_length_that_is_chosen() -> None:
    """There a step is as long as a request may be: memory is divided for the length that is used."""
    shape = config.read(LATENT, "x")
    model = Model("x", "x", shape, estimate(shape))
    chosen = make(model, CPU, Options())
    length = chosen.cache.engine.max_model_len
    assert chosen.fits
    assert length < shape.max_model_len
    assert chosen.cache.engine.max_num_batched_tokens == length
    assert chosen.cache == make(model, CPU, Options(max_model_len=length)).cache
    short = make(model, CPU, Options(max_model_len=1024))
    assert short.cache.engine.max_num_batched_tokens == 2048
