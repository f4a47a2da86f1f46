"""What vLLM would refuse, or count otherwise, is refused here too and not planned for."""

from dataclasses import replace

import pytest

from gateway.planner import config
from gateway.planner.plan import Options, Plan, make
from gateway.planner.problem import PlanProblem
from gateway.planner.source import Model
from gateway.planner.weights import estimate
from tests.planner.config_forms import Config, attention, latent, model
from tests.planner.configs import CONFIGS

PLAIN = model("llama", "LlamaForCausalLM", **attention(32, 32, 8, 128))


def plan(values: Config, options: Options) -> Plan:
    """Of a config, with 8 GiB of KV cache."""
    shape = config.read(values, "x")
    return make(Model("x", "x", shape, estimate(shape)), None, options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(block_size=7), "--block-size 7 is no multiple of 16: take 16"),
        (Options(tensor_parallel_size=3), "--tensor-parallel-size 3 does not divide"),
        (Options(max_num_seqs=64, max_num_batched_tokens=32), "--max-num-seqs 64 is more than the 32"),
        (Options(speculative_tokens=1), "names no draft head"),
        (Options(kv_cache_dtype="fp8_ds_mla"), "multi-head latent attention alone"),
    ],
)
def test_values_that_do_not_go_together(options: Options, said: str) -> None:
    """Each is named, with what would do."""
    with pytest.raises(PlanProblem, match=said):
        plan(PLAIN, replace(options, kv_cache_bytes=2**33))


@pytest.mark.parametrize(
    ("named", "own"), [("nvfp4", {}), ("auto", {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"})]
)
def test_latent_attention_has_no_4_bit_cache(named: str, own: Config) -> None:
    """vLLM refuses it, whoever asks for it; fp8 it has."""
    values = {**CONFIGS["deepseek-v2-lite"], **({"quantization_config": own} if own else {})}
    options = Options(kv_cache_dtype=named, kv_cache_bytes=2**33)
    with pytest.raises(PlanProblem, match="nvfp4 does not go with multi-head latent attention"):
        plan(values, options)
    assert plan(values, replace(options, kv_cache_dtype="fp8")).fits


def test_a_length_beyond_the_models_does_not_fit() -> None:
    """vLLM refuses it, however large the cache; the model's own length is taken."""
    own = PLAIN["max_position_embeddings"]
    assert plan(PLAIN, Options(max_model_len=own, kv_cache_bytes=2**40)).fits
    assert not plan(PLAIN, Options(max_model_len=own + 1, kv_cache_bytes=2**40)).fits


def test_fewer_requests_than_tokens_of_a_step() -> None:
    """Where nobody says how many run at once, a small step limits them."""
    found = plan(PLAIN, Options(max_model_len=4096, max_num_batched_tokens=16, kv_cache_bytes=2**36))
    assert found.max_num_seqs == 16


@pytest.mark.parametrize("name", ["nemotron-h", "nemotron-h-states", "mamba2"])
def test_each_request_of_a_cuda_graph_has_its_state(name: str) -> None:
    """With more requests than blocks vLLM does not start, whether or not there is attention besides."""
    options = Options(max_model_len=4096, max_num_batched_tokens=8192, kv_cache_bytes=2**30)
    blocks = plan(CONFIGS[name], options).cache.num_blocks
    assert plan(CONFIGS[name], replace(options, max_num_seqs=blocks)).fits
    assert not plan(CONFIGS[name], replace(options, max_num_seqs=blocks + 1)).fits


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 32_768),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, 8192),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 8192),
        ({"max_seq_len": 2048}, 2048),
        ({"model_max_length": 131_072}, 131_072),
    ],
)
def test_the_longest_by_the_config(said: Config, length: int) -> None:
    """As vLLM derives it: the least of all fields, scaled unless they are scaled already."""
    assert config.read({**PLAIN, "max_position_embeddings": 8192, **said}, "x").max_model_len == length


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({**PLAIN, "model_type": "zamba2", "mamba_d_state": 64}, "mamba_d_state"),
        ({**PLAIN, "model_type": "minimax", "attn_type_list": [0, 1] * 16}, "attn_type_list"),
        (
            latent("kimi_linear", "KimiLinearForCausalLM", 27, linear_attn_config={"kda_layers": [1]}),
            r"latent attention beside layers with a state \(linear_attn_config\), and how its layers keep it",
        ),
        (latent("deepseek_v32", "DeepseekV32ForCausalLM", 61), "latent attention, and how its layers keep"),
        ({**PLAIN, "model_type": "t5", "is_encoder_decoder": True}, "encoder"),
        ({**PLAIN, "num_key_value_heads": 3}, "does not divide 32"),
        ({**PLAIN, "num_hidden_layers": 10**9}, "at most 10,000"),
        ({**PLAIN, "vocab_size": float("nan")}, "whole number"),
        ({**PLAIN, "vocab_size": float("inf")}, "whole number"),
        ({**PLAIN, "hidden_size": 10**400}, "at most"),
    ],
)
def test_a_model_that_would_be_counted_wrongly(values: Config, said: str) -> None:
    """No plan is better than one that takes each layer for attention."""
    with pytest.raises(PlanProblem, match=said):
        config.read(values, "x")


def test_one_head_of_keys_for_all() -> None:
    """Falcon's first generation: `multi_query`, and no field that counts them."""
    old = {**PLAIN, "model_type": "falcon", "multi_query": True}
    del old["num_key_value_heads"]
    assert {layer.kv_heads for layer in config.read(old, "x").layers} == {1}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["llama-gqa", "gemma3", "qwen3.5-35b", "nemotron-h", "deepseek-v2-lite", "mamba2"]
)
def test_the_longest_that_starts_starts_and_no_longer(name: str) -> None:
    """At the edge: `longest` leaves the one block that vLLM holds back, one token more does not."""
    size = 2**28 if name != "mamba2" else 2**30
    longest = plan(CONFIGS[name], Options(max_model_len=262_144, kv_cache_bytes=size)).cache.longest
    assert longest
    at = plan(CONFIGS[name], Options(max_model_len=longest, kv_cache_bytes=size)).cache
    assert at.starts
    assert at.num_blocks >= at.blocks_per_request + 1
    if longest < 262_144:
        assert not plan(CONFIGS[name], Options(max_model_len=longest + 1, kv_cache_bytes=size)).cache.starts
