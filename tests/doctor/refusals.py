"""What an engine wrote as it refused its flags, and the pieces of that which are vLLM 0.32's own."""

SELECTOR = (
    "AttentionSelectorConfig(head_size=128, dtype=torch.bfloat16, kv_cache_dtype={cache}, block_size=None"
)

# The message, how bad it is, and a part of its mend.
MESSAGES: dict[str, tuple[str, str, str]] = {
    "no backend": (
        f"ValueError: No valid attention backend found for cuda with {SELECTOR.format(cache='nvfp4')}, "
        "use_mla=True). Reasons: {TRITON_MLA: [kv_cache_dtype not supported]}.",
        "error",
        "kv-cache-dtype: auto",
    ),
    "no backend, whatever the cache": (
        f"ValueError: No valid attention backend found for cuda with {SELECTOR.format(cache='auto')}, "
        "has_sink=True). Reasons: {FLASH_ATTN: [block_size not supported]}.",
        "error",
        "take attention-backend and block-size out",
    ),
    "chosen backend": (
        "ValueError: Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this configuration. "
        "Reason: ['kv_cache_dtype not supported']",
        "error",
        "leave attention-backend out",
    ),
    "fp8_e5m2": (
        "ValueError: fp8_e5m2 kv-cache is not supported with fp8 checkpoints.",
        "error",
        "kv-cache-dtype: auto",
    ),
    "bfloat16 cache": (
        "ValueError: bfloat16 KV cache is not supported on Tesla T4 (compute capability 7.5); bfloat16 "
        "requires "
        "SM80+. Re-run with --kv-cache-dtype float16.",
        "error",
        "kv-cache-dtype: float16",
    ),
    "longer than the model": (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, User-specified max_model_len (65536) is greater than the derived max_model_len "
        "(max_position_embeddings=40960 or model_max_length=None in model's config.json). To allow "
        "overriding "
        "this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        "error",
        "max-model-len: 40960 in",
    ),
    "another quantisation": (
        "  Value error, Quantization method specified in the model config (awq) does not match the "
        "quantization "
        "method specified in the `quantization` argument (gptq). [type=value_error]",
        "error",
        "leave quantization out",
    ),
    "heads": (
        "  Value error, Total number of attention heads (28) must be divisible by tensor parallel size (3).",
        "error",
        "tensor-parallel-size: 2 in",
    ),
    "dtype of a quantisation": (
        "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: "
        "[torch.float16]",
        "error",
        "dtype: float16",
    ),
    "cards": (
        "  Value error, World size (4) is larger than the number of available GPUs (2) in this node. If "
        "this is",
        "error",
        "tensor-parallel-size: 2 in",
    ),
    "step and length": (
        "  Value error, max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively",
        "error",
        "max-num-batched-tokens: 8192",
    ),
    "step and requests": (
        "  Value error, max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128).",
        "error",
        "max-num-batched-tokens: 2048",
    ),
    "graphs of a backend": (
        "ValueError: CUDAGraphMode.FULL is not supported with FlexAttentionBackend backend (support: "
        "AttentionCGSupport.NEVER); please try cudagraph_mode=PIECEWISE, and make sure compilation mode is "
        "VLLM_COMPILE",
        "error",
        "cudagraph_mode: PIECEWISE",
    ),
    "sizes of graphs": (
        "ValueError: No valid cudagraph sizes after rounding to multiple of 4 (num_speculative_tokens + 1)",
        "error",
        "multiples of 4",
    ),
    "unit": (
        "ValueError: Invalid prefix_match_unit=64; with a single KV cache group, prefix-cache hits land "
        "on the "
        "block size (16). Unset it or set it to 16.",
        "error",
        "leave prefix-match-unit out",
    ),
    "tool parser": (
        "KeyError: 'invalid tool call parser: qwen9 (chose from { hermes,qwen3_xml })'",
        "error",
        "tool-call-parser: one of those",
    ),
    "reasoning parser": (
        "KeyError: 'invalid reasoning parser: qwen9 (chose from { qwen3 })'",
        "error",
        "reasoning-parser: one of those",
    ),
    "template": (
        "vllm.exceptions.VLLMValidationError: The supplied chat template string (/tmp/mine.jinja) appears "
        "path-like, but doesn't exist! Tried: /tmp/mine.jinja and",
        "error",
        "within the engine's container",
    ),
    "rank": (
        "ValueError: LoRA rank 48 is greater than max_lora_rank 16.",
        "error",
        "max-lora-rank: 64",
    ),
    "rank of none": (
        "ValueError: LoRA rank 1024 is greater than max_lora_rank 512.",
        "error",
        "at most 512",
    ),
    "adapters": (
        "  Value error, max_cpu_loras (1) must be >= max_loras (4).",
        "error",
        "max-cpu-loras: 4",
    ),
    "no adapters": (
        "ValueError: SomeForCausalLM does not support LoRA yet.",
        "error",
        "leave enable-lora and lora-modules out",
    ),
    "speculation": (
        "  Value error, num_speculative_tokens was provided but without speculative model.",
        "error",
        "method: mtp",
    ),
    "architecture": (
        "  Value error, Model architectures ['NewForCausalLM'] are not supported for now. Supported "
        "architectures: dict_keys(",
        "error",
        "newer VLLM_IMAGE",
    ),
    "unknown to Transformers": (
        "ValueError: The checkpoint you are trying to load has model type `new` but Transformers does not "
        "recognize this architecture.",
        "error",
        "newer VLLM_IMAGE",
    ),
    "code of its own": (
        "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in",
        "error",
        "trust-remote-code: true",
    ),
    "empty folder": (
        "RuntimeError: Cannot find any model weights with `/weights/mine`",
        "error",
        "*.safetensors",
    ),
    "revision": (
        "OSError: 0123abc is not a valid git identifier (branch name, tag name or commit id) that exists for",
        "error",
        "leave it out",
    ),
    "no such model": (
        "ValueError: Invalid repository ID or local directory specified: 'Qwen/Qwen-8B'.",
        "error",
        "owner/name as its page has it",
    ),
    "value": (
        "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'int8' (choose from auto, float16)",
        "error",
        "what it takes",
    ),
    "a flag of one's own": (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
        "gpu_memory_utilization\n"
        "  Input should be less than or equal to 1 [type=less_than_equal, input_value=90, input_type=int]",
        "error",
        "correct it in the profile",
    ),
}

# The pieces of those messages that are vLLM's own, and the files of vLLM that have each.
SOURCES = {
    "No valid attention backend found for {cls.device_name} with {config_str}": "platforms/cuda.py",
    "Selected backend {selected_backend} is not valid for this configuration. Reason: ": "platforms/cuda.py",
    "fp8_e5m2 kv-cache is not supported with fp8 checkpoints": "model_executor/layers/attention/attention.py",
    "bfloat16 KV cache is not supported on ": "v1/attention/backends/triton_attn.py",
    "bfloat16 KV cache is not supported by the Triton MLA backend on ": (
        "v1/attention/backends/mla/triton_mla.py"
    ),
    "FP8 KV cache is not supported by the Triton attention backend on ": (
        "v1/attention/backends/triton_attn.py"
    ),
    "FP8 KV cache is not supported by the Triton MLA backend on ": "v1/attention/backends/mla/triton_mla.py",
    "requires SM89+. Re-run with --kv-cache-dtype {suggested}": "v1/attention/backends/triton_attn.py",
    "an FP8 KV cache needs native fp8e4nv (SM89+)": "v1/attention/ops/triton_reshape_and_cache_flash.py",
    "Cannot auto-fit max_model_len: not enough GPU memory available": "v1/core/kv_cache_utils.py",
    "is greater than the derived max_model_len (": "config/model.py",
    " in model's config.json).": "config/model.py",
    " To allow overriding this maximum": "config/model.py",
    "Quantization method specified in the model config (": "config/model.py",
    " does not match the quantization method specified in the `quantization` argument": "config/model.py",
    "Unknown quantization method: {self.quantization}. Must be one of": "config/model.py",
    "Total number of attention heads (": "config/model.py",
    " must be divisible by tensor parallel size (": "config/model.py",
    " is not supported for quantization method {model_config.quantization}. Supported dtypes: ": (
        "config/vllm.py"
    ),
    " is larger than the number of available GPUs (": "config/parallel.py",
    "is smaller than max_model_len (": "config/scheduler.py",
    "must be greater than or equal to max_num_seqs (": "config/scheduler.py",
    "please try cudagraph_mode=PIECEWISE": "config/compilation.py",
    "No valid cudagraph sizes after rounding to multiple of ": "config/compilation.py",
    "Invalid prefix_match_unit={": "v1/core/kv_cache_utils.py",
    "invalid tool call parser: {args.tool_call_parser} (chose from": "entrypoints/launchers/launcher.py",
    "invalid reasoning parser: {reasoning_parser} (chose from": "entrypoints/launchers/launcher.py",
    "The supplied chat template string ({chat_template}) appears path-like, but doesn't exist": (
        "renderers/chat_utils.py"
    ),
    "the supplied chat template path doesn't exist": "renderers/chat_utils.py",
    " is greater than max_lora_rank ": "lora/peft_helper.py",
    "MaxLoRARanks = Literal[1, 8, 16, 32, 64, 128, 256, 320, 512]": "config/lora.py",
    ") must be >= max_loras (": "config/lora.py",
    " does not support LoRA yet": "v1/worker/lora_model_runner_mixin.py",
    "num_speculative_tokens was provided but without speculative model": "config/speculative.py",
    "A speculative model was provided, but `num_speculative_tokens` was not provided": (
        "config/speculative.py"
    ),
    "Unsupported speculative method: '": "config/speculative.py",
    " must be divisible by {n_predict=}": "config/speculative.py",
    "Model architectures {architectures} are not supported for now": "model_executor/models/registry.py",
    " was supported in vLLM until ": "model_executor/models/registry.py",
    " is not supported in-tree ": "model_executor/models/registry.py",
    "Failed to load the model config. If the model is a custom": "transformers_utils/config.py",
    "Failed to load the tokenizer. If the tokenizer is a custom": "tokenizers/hf.py",
    "Cannot find any model weights with `": "model_executor/model_loader/default_loader.py",
    "Invalid repository ID or local directory specified: '{model}'": "transformers_utils/config.py",
    "Insufficient space in {shm_path} for ": "distributed/device_communicators/shm_broadcast.py",
}
