"""Configs in which a field is left out, null, switched off or contradicted: what vLLM then takes is asked."""

from tests.planner.config_forms import (
    MOE,
    Config,
    attention,
    gemma3n,
    gemma4,
    granite_4,
    latent,
    model,
    nemotron_h,
    qwen3_5,
)

_PLAIN = attention(32, 32, 8, 128)
_MIXED = {"sliding_window": 1024, "layer_types": ["sliding_attention", "full_attention"] * 16}
_SLIDING = {"sliding_window": 1024, "layer_types": ["sliding_attention"] * 32}
_ON, _OFF = {"use_sliding_window": True}, {"use_sliding_window": False}
_ALL = {"max_window_layers": 32}
_SHARED = {"shared_expert_intermediate_size": 64}
_SCHEME = {"num_bits": 8, "type": "float", "dynamic": False, "strategy": "tensor", "symmetric": True}
_WEIGHTS = {"num_bits": 8, "type": "float", "dynamic": False, "strategy": "channel", "symmetric": True}
_INPUTS = {"num_bits": 8, "type": "float", "dynamic": True, "strategy": "token", "symmetric": True}
COMPRESSED: Config = {
    "quant_method": "Compressed-Tensors",
    "format": "float-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": _WEIGHTS, "input_activations": _INPUTS}},
    "ignore": ["lm_head"],
    "kv_cache_scheme": _SCHEME,
}
OLD_MODELOPT: Config = {
    "producer": {"name": "modelopt", "version": "0.29.0"},
    "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
}


def _qwen(kind: str, architecture: str, **fields: object) -> Config:
    return model(kind, architecture, **_PLAIN, **fields)


def _gpt_oss(**fields: object) -> Config:
    heads = attention(24, 64, 8, 64, 2880)
    return model(
        "gpt_oss", "GptOssForCausalLM", **heads, num_local_experts=4, num_experts_per_tok=2, **fields
    )


def _llama4(**fields: object) -> Config:
    heads = attention(48, 40, 8, 128)
    experts = {"num_local_experts": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1}
    return model("llama4_text", "Llama4ForCausalLM", **heads, **experts, intermediate_size_mlp=256, **fields)


def _reaching(kind: str, architecture: str, length: int, **fields: object) -> Config:
    heads = attention(32, 32, 32, 96, 3072)
    return {**model(kind, architecture, **heads, **fields), "max_position_embeddings": length}


def _longrope(name: str, **fields: object) -> Config:
    return {"rope_" + name: {"short_factor": [1.0] * 48, "long_factor": [2.0] * 48, **fields}}


_PHI = ("phi3", "Phi3ForCausalLM", 131_072)
_LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
_DEFAULT = {"rope_type": "default", "rope_theta": 1e4}
# Whose length is left to vLLM.
LONG: dict[str, Config] = {
    "phi3-longrope": _reaching(
        *_PHI, pad_token_id=0, original_max_position_embeddings=8192, **_longrope("scaling", type="longrope")
    ),
    "phi3-longrope-own": _reaching(*_PHI, pad_token_id=0, **_longrope("scaling", type="longrope")),
    "phi3-longrope-inside": _reaching(
        *_PHI,
        pad_token_id=0,
        **_longrope("parameters", rope_type="longrope", original_max_position_embeddings=8192),
    ),
    "llama-longrope-inside": _reaching(
        "llama",
        "LlamaForCausalLM",
        131_072,
        **_longrope("scaling", rope_type="longrope", factor=4.0, original_max_position_embeddings=8192),
    ),
    "llama-default-factor": _reaching(
        "llama", "LlamaForCausalLM", 8192, rope_scaling={"rope_type": "default", "factor": 4.0}
    ),
    "llama-two-ropes": _reaching(
        "llama", "LlamaForCausalLM", 8192, rope_scaling={**_LINEAR, "factor": 2.0}, rope_parameters=_LINEAR
    ),
    "olmo3-rope-by-layer": _reaching(
        "olmo3",
        "Olmo3ForCausalLM",
        8192,
        sliding_window=4096,
        rope_parameters={"full_attention": _LINEAR, "sliding_attention": _DEFAULT},
    ),
    "gemma3-scaled": _reaching(
        "gemma3_text", "Gemma3ForCausalLM", 8192, sliding_window=1024, rope_scaling=_LINEAR
    ),
}
ODD: dict[str, Config] = {
    **LONG,
    "mistral-null": model("mistral", "MistralForCausalLM", **_PLAIN, sliding_window=None),
    "gemma3-null": model("gemma3_text", "Gemma3ForCausalLM", **_PLAIN, sliding_window=None),
    "gemma2-pattern": model("gemma2", "Gemma2ForCausalLM", **_PLAIN, sliding_window_pattern=3),
    "gemma3-pattern": model("gemma3_text", "Gemma3ForCausalLM", **_PLAIN, sliding_window_pattern=3),
    "gemma4-pattern": gemma4(30, 8, 2, 1024, sliding_window_pattern=3),
    "olmo3-pattern": model("olmo3", "Olmo3ForCausalLM", **_PLAIN, sliding_window_pattern=3),
    "cohere2-pattern": model("cohere2", "Cohere2ForCausalLM", **_PLAIN, sliding_window_pattern=3),
    "qwen2-moe-on": _qwen("qwen2_moe", "Qwen2MoeForCausalLM", **MOE, **_SLIDING, **_ON, **_SHARED),
    "llama4-null": _llama4(attention_chunk_size=None),
    "gemma3n": gemma3n(35, num_kv_shared_layers=15, sliding_window=512, intermediate_size=[256] * 35),
    "gemma3n-unshared": gemma3n(30, num_kv_shared_layers=0),
    "gemma3n-most-shared": gemma3n(30, num_kv_shared_layers=29),
    "gemma3n-all-shared": gemma3n(30, num_kv_shared_layers=30),
    "nemotron-h-states": nemotron_h("M-M-MM"),
    "nemotron-h-attention": nemotron_h("****"),
    "nemotron-h-no-states": nemotron_h("*-*-**"),
    "nemotron-h-groups": nemotron_h("M-M*", mamba_n_groups=4),
    "granite-4-states": granite_4(layer_types=None),
    "llama-window": model("llama", "LlamaForCausalLM", **_PLAIN, sliding_window=1024),
    "llama-window-0": model("llama", "LlamaForCausalLM", **_PLAIN, sliding_window=0),
    "llama-window-of-none": model(
        "llama", "LlamaForCausalLM", **_PLAIN, sliding_window=1024, layer_types=["full_attention"] * 32
    ),
    "gpt-oss-null": _gpt_oss(sliding_window=None),
    "gpt-oss-own": _gpt_oss(),
    "olmo3-null": model("olmo3", "Olmo3ForCausalLM", **_PLAIN, sliding_window=None),
    "olmo3-own": model("olmo3", "Olmo3ForCausalLM", **_PLAIN),
    "qwen2-mixed": _qwen("qwen2", "Qwen2ForCausalLM", **_MIXED, **_ON, **_ALL),
    "qwen2-mixed-off": _qwen("qwen2", "Qwen2ForCausalLM", **_MIXED, **_OFF, **_ALL),
    "qwen2-sliding": _qwen("qwen2", "Qwen2ForCausalLM", **_SLIDING, **_ON),
    "qwen2-own": _qwen("qwen2", "Qwen2ForCausalLM", **_ON, max_window_layers=0),
    "qwen3-mixed": _qwen("qwen3", "Qwen3ForCausalLM", **_MIXED, **_ON, **_ALL),
    "qwen3-from-0": _qwen("qwen3", "Qwen3ForCausalLM", sliding_window=1024, **_ON, max_window_layers=0),
    "qwen3-moe-mixed": _qwen("qwen3_moe", "Qwen3MoeForCausalLM", **MOE, **_MIXED, **_ON),
    "qwen3-moe-on": _qwen("qwen3_moe", "Qwen3MoeForCausalLM", **MOE, sliding_window=1024, **_ON),
    "qwen3-moe-off": _qwen("qwen3_moe", "Qwen3MoeForCausalLM", **MOE, **_SLIDING, **_OFF),
    "llama4-full": _llama4(
        attention_chunk_size=8192, no_rope_layers=[0] * 48, layer_types=["chunked_attention"] * 48
    ),
    "gemma4-most-shared": gemma4(32, 8, 2, 1024, num_kv_shared_layers=26),
    "nemotron-h-auto": nemotron_h("M-M*M-M-M*M-M*M-M-", mamba_ssm_cache_dtype="auto"),
    "nemotron-h-window": nemotron_h("M-M*M-M-M*M-M*M-M-", sliding_window=512),
    "compressed-cache": model("llama", "LlamaForCausalLM", **_PLAIN, quantization_config=COMPRESSED),
    "compressed-hybrid": {**qwen3_5(32, 16, 4, 32), "quantization_config": COMPRESSED},
    "compressed-latent": latent("deepseek_v2", "DeepseekV2ForCausalLM", 27, quantization_config=COMPRESSED),
    "modelopt-cache": model("llama", "LlamaForCausalLM", **_PLAIN, quantization_config=OLD_MODELOPT),
    "falcon-mamba": model(
        "falcon_mamba",
        "FalconMambaForCausalLM",
        hidden_size=512,
        num_hidden_layers=24,
        state_size=16,
        conv_kernel=4,
        intermediate_size=1024,
        time_step_rank=32,
    ),
    "gpt2": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "dtype": "bfloat16",
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "n_inner": None,
        "n_positions": 1024,
        "vocab_size": 1024,
    },
}
