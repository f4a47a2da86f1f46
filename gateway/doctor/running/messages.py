"""What vLLM 0.32 writes when something is wrong, and the mend. Patterns only: who reads the log is elsewhere.

The file of vLLM that a message is from stands above its pattern; torch's and Triton's own are marked so.
"""

from gateway.doctor.running.message import Match, Message
from gateway.doctor.running.refusals import REFUSALS


def _shorter(match: Match) -> str:
    if not match["fits"]:  # vLLM names a length wherever one fits
        return (
            "a higher gpu-memory-utilization (by 0.05), or a smaller or more quantised model: "
            "no max-model-len fits"
        )
    fits = int(match["fits"])
    rounded = fits // 1024 * 1024 or fits
    return (
        f"max-model-len: {rounded} in the profile (a fixed kv-cache-memory-bytes or more "
        "utilisation also helps)"
    )


def _fewer(match: Match) -> str:
    return (
        f"max-num-seqs: {match['blocks']} in the profile, and max_inflight = {match['blocks']} in "
        "gateway.toml"
    )


def _half(match: Match) -> str:
    return f"max-num-seqs: {max(1, int(match['dummies']) // 2)} in the profile"


def _utilisation(match: Match) -> str:
    free, total = float(match["free"]), float(match["total"])
    share = int((free / max(0.01, total) - 0.02) * 100) / 100
    if share < 0.1:
        return "stop what else holds the GPU: nvidia-smi shows it"
    return (
        f"gpu-memory-utilization: {share:.2f} in the profile, or stop what else holds the GPU "
        "(nvidia-smi); on a "
        "card that is shared for good fix the cache: kv-cache-memory-bytes, with that low utilisation"
    )


def _of_old_card(match: Match) -> str:
    plain = match["type"] or "bfloat16"
    full = f"kv-cache-dtype: auto in the profile ({plain} if it is auto already: the checkpoint asks for fp8)"
    return full if match["kind"] == "MLA" else f"{full}, or int8_per_token_head for half the memory"


MESSAGES: tuple[Message, ...] = (
    # v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory
    Message(
        r"To serve at least one request with the model's max seq len \((?P<len>\d+)\), "
        r"\((?P<needs>[\d.]+) GiB KV "
        r"cache is needed, which is larger than the available KV cache memory \((?P<has>[\d.]+) GiB\)"
        r"(?:\. Based on the available memory, the estimated maximum model length is (?P<fits>\d+))?",
        "error",
        "One request of full length does not fit the KV cache",
        _shorter,
    ),
    Message(
        r"No available memory for the cache blocks|"
        r"Cannot auto-fit max_model_len: not enough GPU memory available",
        "error",
        "The weights leave no memory for the KV cache",
        "a higher gpu-memory-utilization (by 0.05), a smaller or more quantised model, "
        "language-model-only: true",
    ),
    # v1/worker/utils.py, request_memory
    Message(
        r"Free memory on device [^(]*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is "
        r"less than desired GPU "
        r"memory utilization \([\d.]+, [\d.]+ GiB\)",
        "error",
        "Less of the GPU's memory is free than the profile takes",
        _utilisation,
    ),
    # v1/worker/gpu_model_runner.py, load_model
    Message(
        r"Failed to load model - not enough GPU memory",
        "error",
        "The weights do not fit the GPU",
        "a smaller or more quantised model: gateway plan says what fits; or "
        "tensor-parallel-size over more cards",
    ),
    # v1/worker/gpu_model_runner.py, _dummy_sampler_run and _dummy_pooler_run
    Message(
        r"CUDA out of memory occurred when warming up (?:sampler|pooler) with (?P<dummies>\d+) "
        r"dummy requests",
        "error",
        "Out of memory while warming up for so many requests at once",
        _half,
    ),
    # config/compilation.py
    Message(
        r"max_num_seqs \(\d+\) exceeds available Mamba cache blocks \((?P<blocks>\d+)\)",
        "error",
        "More requests at once than the cache has blocks for the model's state",
        _fewer,
    ),
    # config/model.py, _resolve_auto_dtype and _get_and_verify_dtype
    Message(
        r"Your device [^\n]{1,120} doesn't support torch\.\w+\. Falling back to torch\.\w+",
        "warning",
        "The GPU lacks the model's data type: another one is used, with other answers",
        "dtype: half says so in the profile; a card of compute capability 8.0 or more has bfloat16",
    ),
    Message(
        r"Casting torch\.(?:bfloat16 to torch\.float16|float16 to torch\.bfloat16)",
        "warning",
        "The weights are cast to another data type",
        "dtype: auto in the profile, unless that is meant",
    ),
    # platforms/cuda.py, check_if_supports_dtype
    Message(
        r"Bfloat16 is only supported on GPUs with compute capability of at least 8\.0",
        "error",
        "The GPU has no bfloat16",
        "dtype: half in the profile",
    ),
    # model_executor/layers/quantization/utils/marlin_utils_fp8.py and marlin_utils_fp4.py
    Message(
        r"Your GPU does not have native support for FP[48] computation but FP[48] quantization is being used",
        "hint",
        "The GPU does not compute in the weights' format: they save memory and no time",
        "an INT4 checkpoint (AWQ, GPTQ, AutoRound) is smaller and as fast here",
    ),
    # v1/attention/backends/triton_attn.py and mla/triton_mla.py
    # v1/attention/ops/triton_reshape_and_cache_flash.py; the last is of Triton's compiler
    Message(
        r"FP8 KV cache is not supported by the Triton (?P<kind>attention|MLA) backend on [^\n]{1,100}"
        r"\(compute capability [^)\n]{1,10}\)(?:;[^\n]{1,80}Re-run with --kv-cache-dtype (?P<type>\w+))?|"
        r"an FP8 KV cache needs native fp8e4nv \(SM89\+\)|type fp8e4nv not supported in this architecture",
        "error",
        "An fp8 KV cache or kernel does not run on this GPU",
        _of_old_card,
    ),
    # config/vllm.py and compressed_tensors.py
    Message(
        r"(?:quantization method \S+|Quantization scheme) is not supported for the current GPU\. "
        r"(?:Minimum|Min|Required)\s+capability: \d+",
        "error",
        "The GPU is too old for the checkpoint's quantisation",
        "a checkpoint in AWQ or GPTQ INT4: gateway plan names those that fit",
    ),
    # torch, by a kernel that was not built for the card
    Message(
        r"no kernel image is available for execution on the device",
        "error",
        "The engine's build has no kernels for this GPU",
        "VLLM_IMAGE=vllm/vllm-openai:v0.32.0 in .env (CUDA 13, has sm_120 and sm_121), then make up",
    ),
    Message(
        r"ptxas[^\n]{0,80}sm_121a",
        "error",
        "The ptxas that Triton brought does not know this GPU",
        "TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas for the engine, or its image with CUDA 13",
    ),
    Message(
        r"The NVIDIA driver on your system is too old \(found version \d+\)",
        "error",
        "The driver is too old for the engine's CUDA",
        "sudo apt-get install nvidia-driver-580-open; sudo reboot",
    ),
    # config/device.py
    Message(
        r"Failed to infer device type",
        "error",
        "The engine sees no GPU",
        "docker run --rm --gpus all ubuntu nvidia-smi; sudo nvidia-ctk runtime configure --runtime=docker",
    ),
    # huggingface_hub/errors.py and transformers/utils/hub.py
    Message(
        r"Cannot access gated repo for url \S+",
        "error",
        "The model is gated, and the token does not open it",
        "accept the licence on the model's page, put the token into secrets/hf-token, then make up",
    ),
    Message(
        r"We couldn't connect to '[^']+' to load the files, and couldn't find them in the",
        "error",
        "The weights are not in the cache, and the engine does not go online",
        "make up downloads them; outside of the stack: hf download MODEL, or unset HF_HUB_OFFLINE",
    ),
    # utils/argparse_utils.py
    Message(
        r"unrecognized arguments: (?:--\S+ ?)+",
        "error",
        "The engine does not know a flag of its profile",
        "take it out of the profile: vllm serve --help=all lists those of this version",
    ),
    # entrypoints/launchers/cli_args.py
    Message(
        r"--enable-auto-tool-choice requires --tool-call-parser",
        "error",
        "Tools are switched on without a parser",
        "tool-call-parser: hermes in the profile, or the model's own",
    ),
    # utils/system_utils.py, set_ulimit
    Message(
        r"Found ulimit of \d+ and failed to automatically increase",
        "warning",
        "The engine may open few files",
        "ulimits: {nofile: 65536} for its container, or ulimit -n 65536 before it starts",
    ),
    Message(
        r"[Aa]ddress already in use",
        "error",
        "The engine's port is taken",
        "sudo ss -ltnp 'sport = :8000' shows by whom; stop that, or choose another port in the profile",
    ),
    Message(
        r"No space left on device",
        "error",
        "A disk is full",
        "df -h; docker system df; docker image prune -a, or WEIGHTS_DIR=/large/disk in .env",
    ),
    # distributed/device_communicators/shm_broadcast.py, check_shm_free_space
    Message(
        r"Bus error|Insufficient space in /dev/shm for [^\n]{1,120}",
        "error",
        "Shared memory ran out",
        "shm_size: 8gb for the engine's container, or ipc: host",
    ),
    Message(
        r"CUDA error: an illegal (?:instruction|memory access) was encountered",
        "error",
        "A kernel crashed on this GPU",
        "moe-backend: marlin for NVFP4 on sm_12x; then leave out speculative decoding; then "
        "enforce-eager: true",
    ),
    *REFUSALS,
)  # fmt: skip
