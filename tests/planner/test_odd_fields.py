"""A field that holds what it cannot is named with its file; none of them ends in a traceback or a figure."""

from typing import Any

import pytest

from gateway.planner import config
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, State
from tests.planner.config_forms import MOE
from tests.planner.configs import CONFIGS
from tests.planner.odd_configs import COMPRESSED

MIXED = ["sliding_attention", "full_attention"] * 16
INT8_CACHE = {**COMPRESSED, "kv_cache_scheme": {"type": "int", "num_bits": 8}}


def with_(name: str, **fields: Any) -> dict[str, Any]:
    """A config with fields set in its text part."""
    found = dict(CONFIGS[name])
    if "text_config" in found:
        found["text_config"] = {**found["text_config"], **fields}
        return found
    return {**found, **fields}


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("qwen3-moe", {"mlp_only_layers": 3}, "mlp_only_layers is no list of whole numbers"),
        ("qwen3-moe", {"mlp_only_layers": ["a"]}, "mlp_only_layers is no list of whole numbers"),
        ("qwen3-moe", {"num_experts_per_tok": 9}, "num_experts_per_tok is 9 of 8 experts"),
        ("lfm2", {"full_attn_idxs": 3}, "full_attn_idxs is no list of whole numbers"),
        ("lfm2", {"model_type": "lfm2_moe", "full_attn_idxs": None, **MOE}, "layer_types is missing"),
        ("lfm2", {"layer_types": ["conv"]}, "layer_types has 1 entries for 16 layers"),
        ("granite-4", {"layer_types": ["mamba"]}, "layer_types has 1 entries for 40 layers"),
        ("llama4", {"no_rope_layers": 4}, "no_rope_layers is no list of whole numbers"),
        ("llama4", {"no_rope_layers": [1, 0]}, "no_rope_layers has 2 entries for 48 layers"),
        ("llama4", {"no_rope_layers": [1] * 49}, "no_rope_layers has 49 entries for 48 layers"),
        (
            "gemma4-12b-by-layer",
            {"per_layer_config": {"5": {"head_dim": "x"}}},
            r"per_layer_config\.5\.head_dim is 'x'",
        ),
        (
            "gemma4-12b-by-layer",
            {"per_layer_config": {"0": {"num_key_value_heads": 0}}},
            r"per_layer_config\.0\.num_key_value_heads is 0, and at least 1",
        ),
        ("gemma4-26b", {"num_global_key_value_heads": 0}, "num_global_key_value_heads is 0, and at least 1"),
        ("gemma4-26b", {"num_kv_shared_layers": 30}, "num_kv_shared_layers is 30 of 30 layers"),
        ("gemma4-26b", {"num_kv_shared_layers": 31}, "num_kv_shared_layers is 31 of 30 layers"),
        # No full layer is left: vLLM looks for one and ends.
        ("gemma4-26b", {"num_kv_shared_layers": 26}, "leaves none that is full_attention"),
        ("nemotron-h", {"hybrid_override_pattern": "----"}, "hybrid_override_pattern has neither"),
        ("nemotron-h", {"hybrid_override_pattern": "MMxx*Q"}, "hybrid_override_pattern has Q, x"),
        ("nemotron-h", {"layers_block_type": ["mamba", "odd"]}, "layers_block_type has odd"),
        ("qwen2", {"num_attention_heads": 10**5}, "num_attention_heads is 100,000, more than hidden_size"),
        ("llama-gqa", {"tie_word_embeddings": "false"}, "tie_word_embeddings is 'false', and true or false"),
        ("llama-gqa", {"quantization_config": {"quant_method": "gptq", "bits": 0}}, "bits is 0"),
        ("llama-gqa", {"quantization_config": {"quant_method": "gptq", "bits": 10**11}}, "bits is 100,0"),
        ("llama-gqa", {"quantization_config": INT8_CACHE}, r"kv_cache_scheme\.type is 'int' of 8 bits"),
        ("qwen2-mixed", {"max_window_layers": 28}, "max_window_layers is 28 of 32 layers"),
    ],
)
def test_is_named(name: str, fields: dict[str, Any], said: str) -> None:
    """With the file in which it stands."""
    with pytest.raises(PlanProblem, match=rf"somewhere/config\.json: .*{said}"):
        config.read(with_(name, **fields), "somewhere/config.json")


def test_names_of_other_families() -> None:
    """GPT-2's are read; those of MPT are not, and a config as it was published is not blamed."""
    found = config.read(CONFIGS["gpt2"], "x")
    assert found.layers == (Attention(12, 64, 64),) * 12
    other = {"model_type": "mpt", "dtype": "bfloat16", "n_layers": 32, "n_heads": 32, "d_model": 4096}
    with pytest.raises(PlanProblem, match=r"model_type is 'mpt': .* It is not planned for here"):
        config.read({**other, "vocab_size": 50_432, "max_seq_len": 2048}, "x")


@pytest.mark.parametrize("method", ["AWQ", "awq", "Awq"])
def test_a_method_in_any_case(method: str) -> None:
    """As vLLM takes it."""
    own = {"quant_method": method, "bits": 4}
    assert config.read(with_("llama-gqa", quantization_config=own), "x").quantization.method == "int4"


def test_a_cache_that_compressed_tensors_ask_for() -> None:
    """8 bit, where the scheme is there; not in latent attention, whose layers do not look at it."""
    asked = {name: config.read(CONFIGS[f"compressed-{name}"], name) for name in ("cache", "hybrid", "latent")}
    said = {name: shape.quantization.kv_cache_dtype for name, shape in asked.items()}
    assert said == {"cache": "fp8", "hybrid": "fp8", "latent": "auto"}
    without = {**COMPRESSED, "kv_cache_scheme": None}
    found = config.read(with_("llama-gqa", quantization_config=without), "x")
    assert found.quantization.kv_cache_dtype == "auto"


def test_the_type_of_states_that_nemotron_names() -> None:
    """In bytes of an element; "auto" is the model's own type."""
    for named, size in (("float32", 4), ("bfloat16", 2), ("auto", 2)):
        shape = config.read(with_("nemotron-h", mamba_ssm_cache_dtype=named), "x")
        assert {one.recurrent_bytes for one in shape.layers if isinstance(one, State)} == {size}
