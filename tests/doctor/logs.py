"""What an engine wrote as it failed: one message each, within the lines that vLLM 0.32 puts around it."""

START = "(APIServer pid=1) INFO 11-30 18:30:50 [api_utils.py:286] non-default args: {'max_num_seqs': 64}\n"
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
TRACE = "(EngineCore pid=44) ERROR 11-30 18:31:10 [core.py:1510] "


def start_failed(message: str) -> str:
    """A start that ends with this message."""
    lines = ["EngineCore failed to start.", "Traceback (most recent call last):", *message.splitlines()]
    last = "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.\n"
    return START + "".join(f"{TRACE}{line}\n" for line in lines) + last


def died(message: str) -> str:
    """An engine that had served, and died on a request with this message."""
    lines = ["EngineCore encountered a fatal error.", "Traceback (most recent call last):", message]
    return START + READY + "".join(f"{TRACE}{line}\n" for line in lines)


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total "
    "capacity of 23.57 "
    "GiB of which 312.69 MiB is free. {other}Including non-PyTorch memory, this process has "
    "{own} memory in use. "
    "Of the allocated memory 21.21 GiB is allocated by PyTorch."
)
ALONE = OUT_OF_MEMORY.format(other="", own="23.25 GiB")
IN_A_CONTAINER = OUT_OF_MEMORY.format(other="Process 99012 has 23.25 GiB memory in use. ", own="23.20 GiB")
SHARED = OUT_OF_MEMORY.format(other="Process 4410 has 6.02 GiB memory in use. ", own="17.20 GiB")

# The message, how bad it is, and a part of its mend.
MESSAGES: dict[str, tuple[str, str, str]] = {
    "one request does not fit": (
        "ValueError: To serve at least one request with the model's max seq len (131072), "
        "(12.5 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (5.31 GiB). Based on the "
        "available memory, the "
        "estimated maximum model length is 55712. Try increasing `gpu_memory_utilization` "
        "(which also controls CPU "
        "memory on the CPU backend) or decreasing `max_model_len` when initializing the engine.",
        "error",
        "max-model-len: 55296",
    ),
    "one request does not fit, without an estimate": (
        "ValueError: To serve at least one request with the model's max seq len (32768), (8.0 "
        "GiB KV cache is "
        "needed, which is larger than the available KV cache memory (2.0 GiB). Try increasing",
        "error",
        "no max-model-len fits",
    ),
    "no memory for the cache": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when",
        "error",
        "gpu-memory-utilization (by 0.05)",
    ),
    "not free": (
        "ValueError: Free memory on device cuda:0 (17.31/23.57 GiB) on startup is less than "
        "desired GPU memory "
        "utilization (0.9, 21.21 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes.",
        "error",
        "gpu-memory-utilization: 0.71",
    ),
    "weights": (
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization "
        "to free memory for "
        "weights (original error: CUDA out of memory. Tried to allocate 512.00 MiB.)",
        "error",
        "more quantised model",
    ),
    "warm-up": (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy "
        "requests. Please try "
        "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        "error",
        "max-num-seqs: 128",
    ),
    "states": (
        "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (143). Each "
        "decode sequence requires "
        "one Mamba cache block",
        "error",
        "max-num-seqs: 143",
    ),
    "dtype": (
        "Your device 'Tesla T4' (with compute capability 7.5) doesn't support torch.bfloat16. "
        "Falling back to "
        "torch.float16 for compatibility.",
        "warning",
        "dtype: half",
    ),
    "cast": ("Casting torch.bfloat16 to torch.float16.", "warning", "dtype: auto"),
    "bfloat16": (
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
        "8.0. Your Tesla T4 GPU "
        "has compute capability 7.5.",
        "error",
        "dtype: half",
    ),
    "fp8 weights": (
        "Your GPU does not have native support for FP8 computation but FP8 quantization is "
        "being used. Weight-only "
        "FP8 compression will be used leveraging the Marlin kernel.",
        "hint",
        "INT4",
    ),
    "fp8 cache": (
        'triton.compiler.errors.CompilationError: at 1:0: ValueError("type fp8e4nv not supported in this '
        "architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\")",
        "error",
        "kv-cache-dtype: auto",
    ),
    "fp8 cache by Triton": (
        "ValueError: FP8 KV cache is not supported by the Triton attention backend on NVIDIA GeForce RTX "
        "3090 "
        "(compute capability 8.6); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype "
        "bfloat16.",
        "error",
        "int8_per_token_head",
    ),
    "fp8 cache by Triton on an older card": (
        "ValueError: FP8 KV cache is not supported by the Triton attention backend on Tesla T4 (compute "
        "capability 7.5); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype float16.",
        "error",
        "(float16 if it is auto already",
    ),
    "fp8 cache of MLA": (
        "ValueError: FP8 KV cache is not supported by the Triton MLA backend on NVIDIA GeForce RTX 3090 "
        "(compute capability 8.6); native FP8 (fp8e4nv) requires SM89+. Re-run with --kv-cache-dtype "
        "bfloat16.",
        "error",
        "kv-cache-dtype: auto",
    ),
    "fp8 cache as it is written": (
        "AssertionError: Triton reshape-and-cache cannot store kv_cache_dtype=fp8 on this device: an FP8 "
        "KV cache "
        "needs native fp8e4nv (SM89+). Use --kv-cache-dtype bfloat16 (or float16 on SM75).",
        "error",
        "kv-cache-dtype: auto",
    ),
    "quantisation": (
        "ValueError: The quantization method modelopt_fp4 is not supported for the current "
        "GPU. Minimum capability: "
        "100. Current capability: 86.",
        "error",
        "AWQ or GPTQ",
    ),
    "scheme": (
        "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 89. Current "
        "capability: 86.",
        "error",
        "AWQ or GPTQ",
    ),
    "kernels": (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "error",
        "VLLM_IMAGE=",
    ),
    "ptxas": (
        "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        "error",
        "TRITON_PTXAS_PATH",
    ),
    "driver": (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080).",
        "error",
        "nvidia-driver-580",
    ),
    "no device": (
        "RuntimeError: Failed to infer device type, please set the environment variable",
        "error",
        "nvidia-ctk runtime configure",
    ),
    "gated": (
        "Cannot access gated repo for url "
        "https://huggingface.co/meta-llama/Llama-3.3-70B-Instruct/resolve/main/x.",
        "error",
        "accept the licence",
    ),
    "no weights": (
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and "
        "couldn't find them in the "
        "cached files.",
        "error",
        "make up",
    ),
    "flag": (
        "vllm serve: error: unrecognized arguments: --swap-space 4",
        "error",
        "take it out of the profile",
    ),
    "tools": (
        "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
        "error",
        "tool-call-parser: hermes",
    ),
    "files": (
        "Found ulimit of 20000 and failed to automatically increase with error current limit "
        "exceeds maximum limit.",
        "warning",
        "nofile: 65536",
    ),
    "port": ("OSError: [Errno 98] Address already in use", "error", "ss -ltnp"),
    "shared memory": ("Bus error (core dumped)", "error", "shm_size"),
    "little shared memory": (
        "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 64 "
        "MiB free.",
        "error",
        "shm_size",
    ),
    "disk": ("OSError: [Errno 28] No space left on device", "error", "docker image prune"),
    "no length at all": (
        "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a "
        "single token.",
        "error",
        "gpu-memory-utilization (by 0.05)",
    ),
    "kernel crash": (
        "RuntimeError: CUDA error: an illegal instruction was encountered",
        "error",
        "moe-backend: marlin",
    ),
}

# The pieces of those messages that are vLLM's own, and the file of vLLM that has each.
SOURCES = {
    "model's max seq len (": "v1/core/kv_cache_utils.py",
    "which is larger than the available KV cache memory (": "v1/core/kv_cache_utils.py",
    "the estimated maximum model length is ": "v1/core/kv_cache_utils.py",
    "No available memory for the cache blocks": "v1/core/kv_cache_utils.py",
    "on startup is less than desired GPU memory utilization (": "v1/worker/utils.py",
    "Failed to load model - not enough GPU memory": "v1/worker/gpu_model_runner.py",
    "CUDA out of memory occurred when warming up sampler with ": "v1/worker/gpu_model_runner.py",
    "exceeds available Mamba cache blocks (": "config/compilation.py",
    "doesn't support %s. Falling back to %s": "config/model.py",
    "Casting %s to %s.": "config/model.py",
    "Bfloat16 is only supported on GPUs with compute capability of at least 8.0": "platforms/cuda.py",
    "Your GPU does not have native support for FP8 computation but FP8 quantization is being used": (
        "model_executor/layers/quantization/utils/marlin_utils_fp8.py"
    ),
    "Your GPU does not have native support for FP4 computation but FP4 quantization is being used": (
        "model_executor/layers/quantization/utils/marlin_utils_fp4.py"
    ),
    "is not supported for the current GPU. Minimum capability: ": "config/vllm.py",
    "Quantization scheme is not supported for the current GPU. Min capability: ": (
        "model_executor/layers/quantization/compressed_tensors/compressed_tensors.py"
    ),
    "Failed to infer device type": "config/device.py",
    "unrecognized arguments:": "utils/argparse_utils.py",
    "--enable-auto-tool-choice requires --tool-call-parser": "entrypoints/launchers/cli_args.py",
    "Found ulimit of %s and failed to automatically increase": "utils/system_utils.py",
    "non-default args: %s": "entrypoints/serve/utils/api_utils.py",
    "EngineCore failed to start.": "v1/engine/core.py",
    "EngineCore encountered a fatal error.": "v1/engine/core.py",
    "Engine core initialization failed. ": "v1/engine/utils.py",
}
# Names of counters that judges read, as vLLM's loggers write them (without what Prometheus appends).
COUNTERS = (
    "num_requests_running",
    "num_requests_waiting",
    "kv_cache_usage_perc",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "num_preemptions",
    "generation_tokens",
    "prompt_tokens",
    "request_success",
    "iteration_tokens_total",
    "request_prompt_tokens",
    "time_to_first_token_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "cache_config_info",
    "spec_decode_num_accepted_tokens",
)
