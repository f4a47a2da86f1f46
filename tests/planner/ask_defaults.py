# mypy: disable-error-code="import-not-found"
# vLLM is installed beside the engine alone.
"""What the configuration classes that vLLM takes hold where a config.json says nothing: ask_defaults.py FILE.

Run by the engine's Python. Written is one JSON object: a model_type to its fields.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1")

from transformers import CONFIG_MAPPING
from vllm.transformers_utils.config import _CONFIG_REGISTRY

# Of text models: what stands around them is `config.read`'s. Those below were not compared with vLLM's cache.
TYPES = (
    "deepseek_v2", "deepseek_v3", "falcon_h1", "falcon_mamba", "gemma2", "gemma3_text", "gemma3n_text",
    "gemma4_text", "glm4_moe", "glm4_moe_lite", "gpt2", "gpt_oss", "granite", "granitemoehybrid", "jamba",
    "kimi_k2", "laguna", "lfm2", "lfm2_moe", "llama", "llama4_text", "mamba", "mamba2", "mistral", "mixtral",
    "nemotron_h", "olmo3", "phi3", "qwen2", "qwen3", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe",
    "qwen3_next",
    "axk1", "cohere2", "falcon", "mistral4", "qwen2_moe", "qwen3_vl_moe_text",
)  # fmt: skip
# What the planner reads. Left out are draft heads, which only weights tell of, and the names of types, whose
# defaults are all one and the planner's own.
FIELDS = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
    "num_key_value_heads", "head_dim", "multi_query", "new_decoder_architecture",
    "max_position_embeddings", "n_positions", "original_max_position_embeddings",
    "sliding_window", "use_sliding_window", "max_window_layers", "attention_chunk_size",
    "no_rope_layer_interval", "num_kv_shared_layers",
    "attention_k_eq_v", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "mamba_num_heads", "mamba_head_dim", "mamba_n_heads", "mamba_n_groups", "mamba_d_ssm", "mamba_d_state",
    "mamba_d_conv", "mamba_expand", "attn_layer_period", "attn_layer_offset",
    "num_heads", "n_groups", "ssm_state_size", "state_size", "conv_kernel", "expand", "conv_L_cache",
    "intermediate_size", "intermediate_size_mlp", "hidden_size_per_layer_input", "vocab_size_per_layer_input",
    "num_experts", "n_routed_experts", "num_local_experts", "num_experts_per_tok", "top_k_experts",
    "moe_intermediate_size", "moe_latent_size", "n_shared_experts", "shared_expert_intermediate_size",
    "shared_intermediate_size", "moe_shared_expert_intermediate_size", "enable_moe_block",
    "first_k_dense_replace", "num_dense_layers", "decoder_sparse_step", "interleave_moe_layer_step",
    "expert_layer_period", "expert_layer_offset",
    "block_multiple_of", "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim",
    "tie_word_embeddings",
)  # fmt: skip


def of(model_type: str) -> dict[str, Any]:
    """The fields of a class that are not null, in the order above; those of GPT-2 under later names."""
    kind = _CONFIG_REGISTRY[model_type] if model_type in _CONFIG_REGISTRY else CONFIG_MAPPING[model_type]
    held = {field.name: field.default for field in dataclasses.fields(kind)}
    renamed = {
        new: held[old] for new, old in kind.attribute_map.items() if old.startswith("n_") and old in held
    }
    held |= {new: value for new, value in renamed.items() if new in FIELDS[:4]}
    return {name: held[name] for name in FIELDS if isinstance(held.get(name), int | float)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps({name: of(name) for name in TYPES}))
