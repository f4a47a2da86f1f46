"""Configs in which a field is left out, null, switched off or contradicted: what vLLM then takes is asked."""

from tests.planner.config_forms import MOE, Config, attention, gemma4, latent, model, nemotron_h, qwen3_5

_PLAIN = attention(32, 32, 8, 128)
_MIXED = {"sliding_window": 1024, "layer_types": ["sliding_attention", "full_attention"] * 16}
_SLIDING = {"sliding_window": 1024, "layer_types": ["sliding_attention"] * 32}
_ON, _OFF = {"use_sliding_window": True}, {"use_sliding_window": False}
_ALL = {"max_window_layers": 32}
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


ODD: dict[str, Config] = {
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
    "llama4-full": model(
        "llama4_text",
        "Llama4ForCausalLM",
        **attention(48, 40, 8, 128),
        attention_chunk_size=8192,
        num_local_experts=4,
        num_experts_per_tok=1,
        intermediate_size_mlp=256,
        interleave_moe_layer_step=1,
        no_rope_layers=[0] * 48,
        layer_types=["chunked_attention"] * 48,
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
