"""Configs that say no more than their size: all else is what the configuration class of vLLM's holds."""

from tests.planner.config_forms import Config

# Each with its class in vLLM, and with hidden_size and num_attention_heads as its own class has them.
_SIZES: dict[str, tuple[str, int, int | None]] = {
    "axk1": ("AXK1ForCausalLM", 7168, 64),
    "cohere2": ("Cohere2ForCausalLM", 8192, 64),
    "deepseek_v3": ("DeepseekV3ForCausalLM", 7168, 128),
    "falcon": ("FalconForCausalLM", 4544, 71),
    "falcon_h1": ("FalconH1ForCausalLM", 4096, 32),
    "falcon_mamba": ("FalconMambaForCausalLM", 768, None),
    "gemma2": ("Gemma2ForCausalLM", 2304, 8),
    "gemma3_text": ("Gemma3ForCausalLM", 2304, 8),
    "gemma3n_text": ("Gemma3nForCausalLM", 2048, 8),
    "gemma4_text": ("Gemma4ForCausalLM", 2304, 8),
    "gpt_oss": ("GptOssForCausalLM", 2880, 64),
    "granite": ("GraniteForCausalLM", 4096, 32),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", 4096, 32),
    "jamba": ("JambaForCausalLM", 4096, 32),
    "kimi_k2": ("DeepseekV3ForCausalLM", 7168, 128),
    "laguna": ("LagunaForCausalLM", 2048, 48),
    "llama": ("LlamaForCausalLM", 4096, 32),
    "llama4_text": ("Llama4ForCausalLM", 5120, 40),
    "mamba": ("MambaForCausalLM", 768, None),
    "mamba2": ("Mamba2ForCausalLM", 4096, None),
    "mistral": ("MistralForCausalLM", 4096, 32),
    "mixtral": ("MixtralForCausalLM", 4096, 32),
    "nemotron_h": ("NemotronHForCausalLM", 4096, 32),
    "olmo3": ("Olmo3ForCausalLM", 4096, 32),
    "phi3": ("Phi3ForCausalLM", 3072, 32),
    "qwen2": ("Qwen2ForCausalLM", 4096, 32),
    "qwen2_moe": ("Qwen2MoeForCausalLM", 2048, 16),
    "qwen3": ("Qwen3ForCausalLM", 4096, 32),
    "qwen3_moe": ("Qwen3MoeForCausalLM", 2048, 32),
    "qwen3_next": ("Qwen3NextForCausalLM", 2048, 16),
}
# Without which vLLM, too, makes nothing of them; Gemma 3n's as in `config_forms.gemma3n`.
_NEEDED: dict[str, Config] = {
    "gemma3n_text": {"activation_sparsity_pattern": [0.0] * 12, "num_kv_shared_layers": 4},
    "nemotron_h": {"hybrid_override_pattern": "M-*-M-*-M-*-"},
}


def _bare(model_type: str) -> Config:
    architecture, hidden, queries = _SIZES[model_type]
    heads = {} if queries is None else {"num_attention_heads": queries}
    size = {"vocab_size": 1024, "hidden_size": hidden, "num_hidden_layers": 12, **heads}
    named = {"model_type": model_type, "architectures": [architecture], "dtype": "bfloat16"}
    return {**named, **size, **_NEEDED.get(model_type, {})}


def _around(model_type: str, architecture: str, text: Config) -> Config:
    named = {"model_type": model_type, "architectures": [architecture], "dtype": "bfloat16"}
    return {**named, "text_config": text}


BARE: dict[str, Config] = {
    **{f"bare-{model_type}": _bare(model_type) for model_type in _SIZES},
    "bare-gpt2": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "dtype": "bfloat16",
        "vocab_size": 1024,
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
    },
    "bare-qwen3_5": _around("qwen3_5", "Qwen3_5ForConditionalGeneration", {"model_type": "qwen3_5_text"}),
    "bare-qwen3_5_moe": _around("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", {}),
    # As Google published it: neither heads nor vocabulary.
    "gemma3-4b": {
        **_around(
            "gemma3",
            "Gemma3ForConditionalGeneration",
            {
                "hidden_size": 2560,
                "intermediate_size": 10_240,
                "model_type": "gemma3_text",
                "num_hidden_layers": 34,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                "sliding_window": 1024,
            },
        ),
        "vision_config": {
            "hidden_size": 1152,
            "image_size": 896,
            "intermediate_size": 4304,
            "model_type": "siglip_vision_model",
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
            "vision_use_head": False,
        },
    },
}
