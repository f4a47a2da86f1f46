"""The forms in which config.json describes a model, each made from the few numbers that differ."""

from typing import Any

Config = dict[str, Any]

EVERY = {"vocab_size": 1024, "dtype": "bfloat16", "max_position_embeddings": 262_144}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
LINEAR = {
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def model(model_type: str, architecture: str, **fields: Any) -> Config:
    """A config with what every one has."""
    return {"model_type": model_type, "architectures": [architecture], **EVERY, **fields}


def attention(layers: int, queries: int, keys: int, head_dim: int, hidden: int = 512) -> Config:
    """Layers, heads of queries and of keys, and their width."""
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "head_dim": head_dim,
        "hidden_size": hidden,
        "intermediate_size": 256,
    }


def qwen3_5(layers: int, queries: int, keys: int, values: int, *, moe: bool = False, **more: Any) -> Config:
    """Gated DeltaNet with every fourth layer full."""
    kind = "qwen3_5_moe" if moe else "qwen3_5"
    text = {
        **EVERY,
        **attention(layers, queries, keys, 256),
        **LINEAR,
        "model_type": f"{kind}_text",
        "linear_num_value_heads": values,
        "full_attention_interval": 4,
        "mamba_ssm_dtype": "float32",
        **({**MOE, "shared_expert_intermediate_size": 64} if moe else {}),
        **more,
    }
    name = "Qwen3_5MoeForConditionalGeneration" if moe else "Qwen3_5ForConditionalGeneration"
    return {"model_type": kind, "architectures": [name], "dtype": "bfloat16", "text_config": text}


def gemma4(layers: int, keys: int, full_keys: int, window: int, *, queries: int = 16, **more: Any) -> Config:
    """Sliding layers with every sixth full and wider."""
    return model(
        "gemma4_text",
        "Gemma4ForCausalLM",
        **attention(layers, queries, keys, 256),
        sliding_window=window,
        global_head_dim=512,
        num_global_key_value_heads=full_keys,
        attention_k_eq_v=True,
        hidden_size_per_layer_input=0,
        **more,
    )


def gemma4_by_layer(layers: int, keys: int, full_keys: int, window: int) -> Config:
    """As transformers 5.19 saves it."""
    config = gemma4(layers, keys, full_keys, window)
    for field in ("global_head_dim", "num_global_key_value_heads", "attention_k_eq_v"):
        del config[field]
    config["per_layer_config"] = {
        str(index): {"head_dim": 512, "num_key_value_heads": full_keys} for index in range(5, layers, 6)
    }
    return config


def nemotron_h(pattern: str, **more: Any) -> Config:
    """Mamba2 layers by a pattern of letters."""
    return model(
        "nemotron_h",
        "NemotronHForCausalLM",
        **{**attention(len(pattern), 32, 2, 128), "hidden_size": 512},
        hybrid_override_pattern=pattern,
        mamba_num_heads=64,
        mamba_head_dim=64,
        ssm_state_size=128,
        n_groups=8,
        conv_kernel=4,
        expand=2,
        chunk_size=128,
        mlp_hidden_act="relu2",
        use_conv_bias=True,
        **more,
    )


def granite_4(**more: Any) -> Config:
    """Mamba2 layers, and attention where `layer_types` says so."""
    return model(
        "granitemoehybrid",
        "GraniteMoeHybridForCausalLM",
        **attention(40, 12, 4, 128, 1536),
        mamba_n_heads=48,
        mamba_d_state=128,
        mamba_d_head=64,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_n_groups=1,
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=64,
        position_embedding_type="nope",
        **more,
    )


def gemma3n(layers: int, **more: Any) -> Config:
    """Every fifth layer full; activations without sparsity, which vLLM's class computes from numbers."""
    fields = {**attention(layers, 8, 2, 256, 2048), "activation_sparsity_pattern": [0.0] * layers, **more}
    return model("gemma3n_text", "Gemma3nForCausalLM", **fields)


def latent(model_type: str, architecture: str, layers: int, **more: Any) -> Config:
    """Multi-head latent attention with experts."""
    fields = attention(layers, 16, 16, 64)
    del fields["head_dim"]
    return model(
        model_type,
        architecture,
        **fields,
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        first_k_dense_replace=1,
        n_routed_experts=8,
        n_shared_experts=2,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
        topk_method="greedy",
        n_group=1,
        topk_group=1,
        **more,
    )
