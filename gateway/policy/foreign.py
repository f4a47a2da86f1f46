"""What engines of kind "openai" are not sent: fields that vLLM alone knows.

Another server may refuse a name that it does not know, or take it for something else. What llama.cpp,
Ollama or SGLang understand, too, stays: `chat_template_kwargs`, `top_k`, `min_p`, `repeat_penalty`,
`repetition_penalty`, `stop_token_ids`, `min_tokens`, `ignore_eos`, `grammar` and others.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_CACHE = "is about vLLM's prefix cache or its schedule"
_TRANSFER = "is about how vLLM's engines hand work to each other"
_SAMPLING = "is a way of sampling that vLLM has alone"
_ANSWER = "adds to the answer what vLLM has alone"
_INPUT = "is about how vLLM reads a prompt"
_CONSTRAINT = "is vLLM's spelling of a constraint: others take response_format, json_schema or grammar"

OF_VLLM_ALONE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("cache_salt", "priority", "session_id", "request_id"), _CACHE),
        **dict.fromkeys(("kv_transfer_params", "ec_transfer_params", "vllm_xargs"), _TRANSFER),
        **dict.fromkeys(
            (
                "use_beam_search", "length_penalty", "watermarking", "bad_words", "allowed_token_ids",
                "repetition_detection", "thinking_token_budget", "stream_interval",
            ),
            _SAMPLING,
        ),
        **dict.fromkeys(
            (
                "include_reasoning", "prompt_logprobs", "logprob_token_ids", "return_token_ids",
                "return_tokens_as_token_ids", "return_token_offsets", "return_prompt_text",
                "routed_experts_prompt_start", "spaces_between_special_tokens", "enable_response_messages",
            ),
            _ANSWER,
        ),
        **dict.fromkeys(
            (
                "mm_processor_kwargs", "media_io_kwargs", "mm_payload", "return_mm_kwargs", "prompt_embeds",
                "truncate_prompt_tokens", "truncation_side", "previous_input_messages",
            ),
            _INPUT,
        ),
        **dict.fromkeys(
            (
                "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
                "guided_decoding_backend", "guided_whitespace_pattern",
            ),
            _CONSTRAINT,
        ),
    }
)  # fmt: skip
"""The fields, each with the reason why it is not sent."""


def strip(body: dict[str, Any]) -> list[str]:
    """Take the fields of vLLM's own out of `body`, whoever wrote them; answers their names."""
    if OF_VLLM_ALONE.keys().isdisjoint(body):
        return []
    names = [name for name in body if name in OF_VLLM_ALONE]
    for name in names:
        del body[name]
    return names
