"""What vLLM 0.32 writes when it refuses a flag, or what a flag names: model, template, adapter, draft.

The file of vLLM that a message is from stands above its pattern; those of other packages are marked so.
"""

from gateway.doctor.running.message import Match, Message

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # config/lora.py, MaxLoRARanks
IN_PROFILE = "in the profile"


def _rank(match: Match) -> str:
    needed = int(match["rank"])
    fits = next((rank for rank in LORA_RANKS if rank >= needed), None)
    return f"max-lora-rank: {fits} {IN_PROFILE}" if fits else "an adapter of a rank of at most 512"


def _divisor(match: Match) -> str:
    heads, size = int(match["heads"]), int(match["size"])
    fits = next((some for some in range(size - 1, 1, -1) if heads % some == 0), 1)
    return f"tensor-parallel-size: {fits} {IN_PROFILE}"


def _parser(match: Match) -> str:
    flag = "tool-call-parser" if match["kind"] == "tool call" else "reasoning-parser"
    return f"{flag}: one of those that the line names; gateway plan writes that of the model's family"


def _backend(match: Match) -> str:
    if "kv_cache_dtype=auto" in match[0]:
        return f"take attention-backend and block-size out of what is {IN_PROFILE}: vLLM finds them itself"
    return f"kv-cache-dtype: auto {IN_PROFILE}, without attention-backend and block-size"


REFUSALS: tuple[Message, ...] = (
    # platforms/cuda.py, get_attn_backend_cls
    Message(
        r"No valid attention backend found for \w+ with AttentionSelectorConfig\([^)\n]{0,900}",
        "error",
        "No attention backend takes model, cache and card together",
        _backend,
    ),
    Message(
        r"Selected backend \S+ is not valid for this configuration\. Reason: [^\n]{1,200}",
        "error",
        "The chosen attention backend does not take this model, cache or card",
        f"leave attention-backend out {IN_PROFILE}, and kv-cache-dtype: auto if the reason names it",
    ),
    # model_executor/layers/attention/attention.py
    Message(
        r"fp8_e5m2 kv-cache is not supported with fp8 checkpoints",
        "error",
        "An fp8 checkpoint takes no cache in fp8_e5m2",
        f"kv-cache-dtype: auto {IN_PROFILE}, or fp8 on a card of compute capability 8.9 or more",
    ),
    # v1/attention/backends/triton_attn.py and mla/triton_mla.py
    Message(
        r"bfloat16 KV cache is not supported (?:by the Triton MLA backend )?on [^\n(]{1,80}",
        "error",
        "The GPU has no bfloat16 for the KV cache",
        f"kv-cache-dtype: float16 {IN_PROFILE}",
    ),
    # config/model.py
    Message(
        r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len "
        r"\(\w+=(?P<most>\d+)[^)\n]{0,120}\)\. To allow overriding",
        "error",
        "max-model-len is longer than the model's own context",
        lambda match: f"max-model-len: {match['most']} {IN_PROFILE}; or hf-overrides with the scaling of "
        "rope that the model's card names",
    ),
    Message(
        r"Quantization method specified in the model config \(\S+\) does not match the quantization method "
        r"specified in the `quantization` argument|Unknown quantization method: \S+\. Must be one of",
        "error",
        "The flag quantization does not fit the checkpoint",
        f"leave quantization out {IN_PROFILE}: the checkpoint says it itself",
    ),
    Message(
        r"Total number of attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size "
        r"\((?P<size>[1-9]\d*)\)",
        "error",
        "The model's heads cannot be shared among so many cards",
        _divisor,
    ),
    # config/vllm.py
    Message(
        r"torch\.\w+ is not supported for quantization method \w+\. "
        r"Supported dtypes: \[torch\.(?P<type>\w+)[^\]\n]*\]",
        "error",
        "The checkpoint's quantisation does not compute in that data type",
        lambda match: f"dtype: {match['type']} {IN_PROFILE}",
    ),
    # config/parallel.py
    Message(
        r"World size \(\d+\) is larger than the number of available GPUs \((?P<cards>\d+)\)",
        "error",
        "The flags spread the model over more cards than the engine gets",
        lambda match: f"tensor-parallel-size: {max(1, int(match['cards']))} {IN_PROFILE}, or count in the "
        "profile's overlay (deploy/profiles/compose): gateway doctor --before, check cards",
    ),
    # config/scheduler.py
    Message(
        r"max_num_batched_tokens \(\d+\) (?:is smaller than max_model_len|must be greater than or equal to "
        r"max_num_seqs) \((?P<least>\d+)\)",
        "error",
        "A step of fewer tokens than it has to hold",
        lambda match: f"max-num-batched-tokens: {max(2048, int(match['least']))} {IN_PROFILE}",
    ),
    # config/compilation.py, resolve_cudagraph_mode_and_sizes
    Message(
        r"CUDAGraphMode\.\w+ is not supported with [^\n]{1,160}please try cudagraph_mode=PIECEWISE",
        "error",
        "The attention backend cannot be captured whole in CUDA graphs",
        f"compilation-config: {{cudagraph_mode: PIECEWISE}} {IN_PROFILE}",
    ),
    Message(
        r"No valid cudagraph sizes after rounding to multiple of (?P<unit>\d+)",
        "error",
        "The sizes of CUDA graphs do not fit speculative decoding",
        lambda match: f"cudagraph-capture-sizes that are multiples of {match['unit']} {IN_PROFILE}, or none",
    ),
    # v1/core/kv_cache_utils.py, resolve_kv_cache_block_sizes
    Message(
        r"Invalid prefix_match_unit=\d+;[^\n]{1,160}",
        "error",
        "prefix-match-unit does not divide the cache's blocks",
        f"leave prefix-match-unit out {IN_PROFILE}",
    ),
    # entrypoints/launchers/launcher.py, validate_api_server_args
    Message(
        r"invalid (?P<kind>tool call|reasoning) parser: \S+ \(chose from",
        "error",
        "The engine has no parser of that name",
        _parser,
    ),
    # renderers/chat_utils.py, validate_chat_template
    Message(
        r"The supplied chat template string \([^\n]{1,200}\) appears path-like, but doesn't exist|"
        r"the supplied chat template path doesn't exist",
        "error",
        "The engine does not see the chat template's file",
        "chat-template: a path within the engine's container (mount the file in the profile's overlay), or "
        "none: most models bring their own",
    ),
    # lora/peft_helper.py, config/lora.py, v1/worker/lora_model_runner_mixin.py
    Message(
        r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank \d+",
        "error",
        "A LoRA adapter has a higher rank than the engine takes",
        _rank,
    ),
    Message(
        r"max_cpu_loras \(\d+\) must be >= max_loras \((?P<least>\d+)\)",
        "error",
        "Fewer LoRA adapters in memory than in one batch",
        lambda match: f"max-cpu-loras: {match['least']} {IN_PROFILE}",
    ),
    Message(
        r"\w+ does not support LoRA yet",
        "error",
        "The model takes no LoRA adapters",
        f"leave enable-lora and lora-modules out {IN_PROFILE}",
    ),
    # config/speculative.py
    Message(
        r"num_speculative_tokens was provided but without speculative model|A speculative model was "
        r"provided, but `num_speculative_tokens` was not provided|Unsupported speculative method: '[^'\n]*'|"
        r"num_speculative_tokens:\d+ must be divisible by n_predict=\d+",
        "error",
        "The speculative config lacks something, or does not fit the model",
        "speculative-config: {method: mtp, num_speculative_tokens: 1} for a model with a draft head of its "
        "own, else leave it out",
    ),
    # model_executor/models/registry.py; the last is of transformers/models/auto/configuration_auto.py
    Message(
        r"Model architectures \[[^\]\n]{1,160}\] are not supported for now|Model architecture \w+ (?:was "
        r"supported in vLLM until|is not supported in-tree)|The checkpoint you are trying to load has model "
        r"type `[^`\n]{1,80}` but Transformers does not recognize",
        "error",
        "The engine does not know the model's architecture",
        "another model: gateway plan names those that run; or a newer VLLM_IMAGE in .env, then make up",
    ),
    # transformers_utils/config.py and tokenizers/hf.py
    Message(
        r"Failed to load the (?:model config|tokenizer)\. If the (?:model|tokenizer) is a custom",
        "error",
        "The model brings code of its own, which the engine does not run",
        f"trust-remote-code: true {IN_PROFILE} runs it: read it first; or a model without",
    ),
    # model_executor/model_loader/default_loader.py
    Message(
        r"Cannot find any model weights with `[^`\n]{1,200}`",
        "error",
        "The model's folder holds no weights",
        "make up downloads them anew; of a folder of your own: ls -l shows its *.safetensors",
    ),
    # transformers/utils/hub.py
    Message(
        r"\S+ is not a valid git identifier \(branch name, tag name or commit id\)",
        "error",
        "The model has no such revision",
        f"revision: a commit of the model's page {IN_PROFILE}, or leave it out",
    ),
    # huggingface_hub/utils/_http.py, transformers/utils/hub.py; vLLM's transformers_utils/config.py
    Message(
        r"Repository Not Found for url: \S+|\S+ is not a local folder and is not a valid model identifier|"
        r"Invalid repository ID or local directory specified: '[^'\n]*'",
        "error",
        "The engine finds no model of that name",
        "model: owner/name as its page has it, or a folder that the engine's container sees; a private one "
        "needs secrets/hf-token",
        echo=True,
    ),
    # argparse, of Python
    Message(
        r"error: argument --[\w/-]+: (?:invalid [^\n]{1,160}|expected \w+ arguments?)",
        "error",
        "A flag has a value that the engine does not take",
        "the line names what it takes, as vllm serve --help=all does: correct it in the profile",
    ),
    # pydantic, of vLLM's config classes; behind the bracket it shows all that was given, secrets too
    Message(
        r"\d+ validation errors? for \w+Config\n[^\n\[]{0,200}(?:\n[^\n\[]{1,200})?",
        "error",
        "vLLM refuses the flags of the profile",
        "the lines name the flag and what it may be: correct it in the profile",
        echo=True,
    ),
)  # fmt: skip
