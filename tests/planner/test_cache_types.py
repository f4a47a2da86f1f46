"""A type of KV cache that vLLM 0.32 has no backend for is refused with the mend; all others are planned."""

from dataclasses import replace

import pytest

from gateway.planner import catalogue, config, hardware
from gateway.planner.plan import Options, Plan, make
from gateway.planner.problem import PlanProblem
from gateway.planner.source import Model, find
from gateway.planner.weights import estimate
from tests.planner.config_forms import Config, attention, model
from tests.planner.configs import CONFIGS

PLAIN = model("llama", "LlamaForCausalLM", **attention(32, 32, 8, 128))
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
}
SCHEME = {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}
TURING = replace(hardware.find("rtx3090"), name="this", capability=(7, 5))


def plan(name: str, card: str, cache_type: str) -> Plan:
    """Of a model of the catalogue, with one request of 8,192 tokens."""
    return make(find(name), hardware.find(card), Options(max_model_len=8192, kv_cache_dtype=cache_type))


def planned(values: Config, card: hardware.Hardware | None, cache_type: str = "auto") -> Plan:
    """Of a config, with 8 GiB of KV cache."""
    shape = config.read(values, "x")
    options = Options(max_model_len=4096, kv_cache_bytes=2**33, kv_cache_dtype=cache_type)
    return make(Model("x", "x", shape, estimate(shape)), card, options)


@pytest.mark.parametrize(
    ("name", "card", "cache_type", "why"),
    [
        ("qwen3-30b-a3b-fp8", "rtx-pro-6000", "fp8_e5m2", "scales of an fp8 cache, .*: take fp8"),
        ("glm-4.7-flash", "rtx-pro-6000", "int8_per_token_head", "latent attention, .*: take fp8"),
        ("glm-4.7-flash", "rtx-pro-6000", "fp8_e5m2", "latent attention, .*: take fp8"),
        ("glm-4.7-flash", "spark", "fp8_ds_mla", "latent attention, .*: take fp8"),
        ("glm-4.7-flash", "h100", "nvfp4_ds_mla", "latent attention, .*: take fp8"),
        ("glm-4.7-flash", "rtx3090", "fp8", "latent attention on sm_86, .*: take auto"),
        ("gpt-oss-20b", "rtx5090", "nvfp4", "attention on sm_120, .*: take fp8"),
        ("gpt-oss-20b", "rtx3090", "fp8", "attention on sm_86, .*: take int8_per_token_head"),
        ("gpt-oss-20b", "rtx3090", "fp8_e5m2", "attention on sm_86, .*: take int8_per_token_head"),
        ("qwen3-8b-awq", "rtx3090", "fp8_per_token_head", "attention on sm_86, .*: take fp8"),
        ("smollm2-135m", "cpu", "int8_per_token_head", "attention on a CPU, .*: take fp8"),
        ("smollm2-135m", "cpu", "nvfp4", "attention on a CPU, .*: take fp8"),
        ("glm-4.7-flash", "cpu", "fp8", "latent attention on a CPU, .*: take auto"),
    ],
)
def test_a_type_that_nothing_reads(name: str, card: str, cache_type: str, why: str) -> None:
    """Is refused by the model, the card, or both, with the type that does; that one is then planned."""
    with pytest.raises(PlanProblem, match=f"^--kv-cache-dtype {cache_type} does not go with .*{why}\\.$"):
        plan(name, card, cache_type)
    plan(name, card, why.rpartition(" ")[2])


@pytest.mark.parametrize(
    ("name", "card", "cache_type"),
    [
        ("qwen3-8b-awq", "rtx3090", "fp8"),
        ("qwen3-8b-awq", "rtx3090", "fp8_e5m2"),
        ("qwen3-8b-awq", "rtx3090", "int8_per_token_head"),
        ("gpt-oss-20b", "rtx3090", "int8_per_token_head"),
        ("qwen3-8b-awq", "rtx4090", "fp8"),
        ("qwen3-8b-awq", "rtx4090", "fp8_per_token_head"),
        ("qwen3-8b-awq", "rtx5090", "nvfp4"),
        ("gpt-oss-20b", "rtx5090", "fp8_e5m2"),
        ("gpt-oss-20b", "rtx5090", "fp8"),
        ("qwen3-30b-a3b-fp8", "spark", "fp8"),
        ("qwen3-30b-a3b-fp8", "h100", "fp8_e4m3"),
        ("glm-4.7-flash", "h100", "fp8"),
        ("glm-4.7-flash", "spark", "fp8"),
        ("smollm2-135m", "cpu", "fp8_e5m2"),
    ],
)
def test_a_type_that_something_reads(name: str, card: str, cache_type: str) -> None:
    """Is planned, and fits."""
    assert plan(name, card, cache_type).fits


@pytest.mark.parametrize("card", [name for name in hardware.NAMES if name != "this"])
def test_what_the_checkpoint_says_is_never_refused(card: str) -> None:
    """No model of the catalogue, on any machine; nor is fp8 from sm_89 on."""
    found = hardware.find(card)
    types = ("auto", "fp8") if (found.capability or (0, 0)) >= (8, 9) else ("auto",)
    for entry in catalogue.every():
        for cache_type in types:
            made = Model(entry.name, entry.repository, entry.shape, entry.weights)
            make(made, found, Options(max_model_len=4096, kv_cache_dtype=cache_type))


@pytest.mark.parametrize(
    ("quantization", "refused"),
    [
        (FP8, True),
        (MODELOPT, True),
        (COMPRESSED, False),
        ({**COMPRESSED, **SCHEME}, True),
        ({"quant_method": "awq", "bits": 4}, False),
    ],
)
def test_fp8_e5m2_and_scales(quantization: Config, refused: bool) -> None:
    """Whether the checkpoint can hold scales decides, on every card: of compressed-tensors, its scheme."""
    values = {**PLAIN, "quantization_config": quantization}
    if not refused:
        assert planned(values, hardware.find("rtx3090"), "fp8_e5m2").fits
        return
    for card in (None, hardware.find("rtx3090"), hardware.find("h100")):
        with pytest.raises(PlanProblem, match="fp8_e5m2 does not go with a checkpoint"):
            planned(values, card, "fp8_e5m2")


def test_a_width_that_flashinfer_lacks() -> None:
    """Phi-3's 96: before sm_89 nothing else reads fp8; from there on Triton does."""
    with pytest.raises(PlanProblem, match="sm_86"):
        planned(CONFIGS["phi3-window"], hardware.find("rtx3090"), "fp8")
    assert planned(CONFIGS["phi3-window"], hardware.find("rtx4090"), "fp8").fits


def test_before_flashinfer() -> None:
    """On Turing no backend reads fp8, and Triton reads int8."""
    with pytest.raises(PlanProblem, match=r"sm_75.*take int8_per_token_head"):
        planned(PLAIN, TURING, "fp8")
    assert planned(PLAIN, TURING, "int8_per_token_head").fits


def test_a_card_that_nobody_knows() -> None:
    """A described one may be of any kind: what starts on some card is planned, what starts on none is not."""
    card = hardware.described(24 * 2**30, 936e9)
    assert planned(CONFIGS["gpt-oss-20b"], card, "fp8").fits
    assert planned(CONFIGS["gpt-oss-20b"], None, "fp8").fits
    with pytest.raises(PlanProblem, match="does not go with multi-head latent attention,"):
        planned(CONFIGS["deepseek-v2-lite"], card, "int8_per_token_head")


def test_a_checkpoint_that_asks_for_it_itself() -> None:
    """Its own fp8 is refused where nothing reads it, and the mend is a type to name, not `auto`."""
    own = {"quant_algo": "FP8", "quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}
    values = {**CONFIGS["deepseek-v2-lite"], "quantization_config": own}
    with pytest.raises(PlanProblem, match=r"asks for a KV cache in fp8.*take --kv-cache-dtype bfloat16"):
        planned(values, hardware.find("rtx3090"))
    assert planned(values, hardware.find("rtx3090"), "bfloat16").fits


def test_states_alone_have_no_such_cache() -> None:
    """Without attention no backend is asked."""
    planned(CONFIGS["mamba2"], hardware.find("rtx3090"), "fp8")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qwen3-8b-awq", "an fp8 cache needs FlashInfer, or int8_per_token_head"),
        ("gpt-oss-20b", "FlashInfer does not serve this model here, so an fp8 cache does not start"),
        ("glm-4.7-flash", "latent attention has no smaller cache"),
    ],
)
def test_the_risk_says_what_the_model_can(name: str, said: str) -> None:
    """Before sm_89: FlashInfer is named where it serves the model, and nowhere else."""
    [risk] = [risk for risk in plan(name, "rtx3090", "auto").risks if "fp8e4nv on sm_86" in risk]
    assert said in risk
