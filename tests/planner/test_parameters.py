"""Weights counted from a config are as many as the model's makers say."""

from typing import Any

import pytest

from gateway.planner import config

HEADS = {"num_attention_heads": 32, "num_key_value_heads": 8}
LLAMA4: dict[str, Any] = {
    "model_type": "llama4_text",
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16_384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_experts_per_tok": 1,
    "vocab_size": 202_048,
    "attention_chunk_size": 8192,
}
MODELS: dict[str, dict[str, Any]] = {
    "falcon-mamba-7b": {
        "model_type": "falcon_mamba",
        "hidden_size": 4096,
        "intermediate_size": 8192,
        "num_hidden_layers": 64,
        "state_size": 16,
        "conv_kernel": 4,
        "time_step_rank": 256,
        "vocab_size": 65_024,
        "tie_word_embeddings": False,
    },
    "mamba-2.8b": {
        "model_type": "mamba",
        "hidden_size": 2560,
        "intermediate_size": 5120,
        "num_hidden_layers": 64,
        "state_size": 16,
        "conv_kernel": 4,
        "time_step_rank": "auto",
        "vocab_size": 50_280,
    },
    "mamba2-2.7b": {
        "model_type": "mamba2",
        "hidden_size": 2560,
        "intermediate_size": 5120,
        "num_hidden_layers": 64,
        "num_heads": 80,
        "head_dim": 64,
        "n_groups": 1,
        "state_size": 128,
        "conv_kernel": 4,
        "expand": 2,
        "vocab_size": 50_288,
        "tie_word_embeddings": True,
    },
    "jamba-v0.1": {
        "model_type": "jamba",
        **HEADS,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 8,
        "attn_layer_offset": 4,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_dt_rank": 256,
        "vocab_size": 65_536,
    },
    "lfm2-1.2b": {
        "model_type": "lfm2",
        **HEADS,
        "hidden_size": 2048,
        "block_ff_dim": 12_288,
        "num_hidden_layers": 16,
        "conv_L_cache": 3,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "vocab_size": 65_536,
    },
    "llama-4-scout": {**LLAMA4, "num_local_experts": 16, "interleave_moe_layer_step": 1},
    "llama-4-maverick": {**LLAMA4, "num_local_experts": 128, "interleave_moe_layer_step": 2},
    # google/gemma-3n-E4B-it: all in a text part, and a width for each layer.
    "gemma-3n-e4b": {
        "model_type": "gemma3n",
        "text_config": {"model_type": "gemma3n_text", "intermediate_size": [16_384] * 35},
    },
    "nemotron-h-8b": {
        "model_type": "nemotron_h",
        "hidden_size": 4096,
        "intermediate_size": 21_504,
        "num_attention_heads": 32,
        "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
        "vocab_size": 131_072,
    },
    "gpt2": {
        "model_type": "gpt2",
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "n_inner": None,
        "n_positions": 1024,
        "vocab_size": 50_257,
    },
}


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("falcon-mamba-7b", 7.27, 7.0),
        ("mamba-2.8b", 2.77, 2.77),
        ("mamba2-2.7b", 2.70, 2.70),
        ("jamba-v0.1", 51.6, 12.0),
        ("lfm2-1.2b", 1.17, 1.17),
        # Of the makers' 17.2B, the embedding's 1.0B are looked up and not read.
        ("llama-4-scout", 107.8, 17.2 - 1.03),
        ("llama-4-maverick", 400.7, 17.2 - 1.03),
        # Of 6.9B without what sees and hears, 2.3B are embeddings of the layers' own.
        ("gemma-3n-e4b", 6.87, 6.87 - 2.35),
        ("nemotron-h-8b", 8.1, 8.1 - 0.54),
        ("gpt2", 0.124, 0.124),
    ],
)
def test_billions_as_published(name: str, total: float, active: float) -> None:
    """Within two in a hundred, for the whole model and for one token."""
    values = {"dtype": "bfloat16", "max_position_embeddings": 32_768, **MODELS[name]}
    found = config.read(values, name).parameters
    assert found.total / 1e9 == pytest.approx(total, rel=0.02)
    assert found.active / 1e9 == pytest.approx(active, rel=0.02)


def test_defaults_make_no_experts() -> None:
    """Nemotron-H's class has eight experts, and this model no layer of them: its steps are not as wide."""
    values = {"dtype": "bfloat16", **MODELS["nemotron-h-8b"]}
    found = config.read(values, "x")
    assert found.parameters.experts == 0
    assert found.widest == 2 * 21_504


def test_layers_that_share_a_cache_have_no_keys_of_their_own() -> None:
    """Queries and an output, they have: Gemma 3n's last fifteen."""
    text = {"model_type": "gemma3n_text", "dtype": "bfloat16", "vocab_size": 1024, "hidden_size": 2048}
    text |= {"num_hidden_layers": 35, "num_attention_heads": 8}
    shared, apart = (
        config.read({**text, "num_kv_shared_layers": count}, "x").parameters.total for count in (15, 0)
    )
    assert apart - shared == 15 * 2 * 2048 * 2 * 256


QWEN_27B = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16}
QWEN_27B |= {"temporal_patch_size": 2, "spatial_merge_size": 2, "out_hidden_size": 5120}
GEMMA: dict[str, Any] = {"model_type": "gemma4_vision", "num_hidden_layers": 27, "hidden_size": 1152}
GEMMA |= {"intermediate_size": 4304, "patch_size": 16, "position_embedding_size": 10_240}
SIGLIP = {"num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 14}


@pytest.mark.parametrize(
    ("fields", "billions"),
    [
        (QWEN_27B, 0.46),
        (GEMMA, 0.57),
        (SIGLIP, 0.41),
        ({}, None),
        ({**SIGLIP, "hidden_size": [96, 192]}, None),
        ({**SIGLIP, "num_hidden_layers": True}, None),
    ],
)
def test_what_sees_images(fields: dict[str, Any], billions: float | None) -> None:
    """Counted where the fields tell it; where they do not, nothing is refused and nothing made up."""
    text = {**MODELS["lfm2-1.2b"], "max_position_embeddings": 32_768}
    found = config.read({"model_type": "seeing", "vision_config": fields, "text_config": text}, "x")
    assert found.vision
    if billions is None:
        assert found.vision_parameters is None
    else:
        assert (found.vision_parameters or 0) / 1e9 == pytest.approx(billions, rel=0.02)
