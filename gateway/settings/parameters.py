"""The kinds of value that known parameters take: a default of a wrong type is found before its callers.

Only parameters that operators set and whose type all engines agree on; any other name may hold anything.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from gateway.settings.fault import Fault


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _is_text_or_list(value: object) -> bool:
    return isinstance(value, str) or _is_list_of(value, str)


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


_Kind = tuple[Callable[[Any], bool], str]
_NUMBER: _Kind = (_is_number, "a number")
_WHOLE: _Kind = (_is_whole, "a whole number")
_SWITCH: _Kind = (lambda value: isinstance(value, bool), "true or false")
_TEXT: _Kind = (lambda value: isinstance(value, str), "text in quotes")
_TABLE: _Kind = (lambda value: isinstance(value, Mapping), 'a table, as in { effort = "low" }')
_TABLES: _Kind = (lambda value: _is_list_of(value, dict), "a list of tables")
_TEXTS: _Kind = (_is_text_or_list, 'text in quotes or a list of it, as in ["…"]')
_WORDS: _Kind = (lambda value: _is_list_of(value, str), 'a list of text, as in ["…"]')
_IDS: _Kind = (lambda value: _is_list_of(value, int), "a list of token ids, as in [1, 2]")
_COUNT_OR_SWITCH: _Kind = (
    lambda value: isinstance(value, bool) or _is_whole(value),
    "a whole number or true",
)

KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty",
                "repetition_penalty", "repeat_penalty", "length_penalty",
            ),
            _NUMBER,
        ),
        **dict.fromkeys(
            (
                "top_k", "seed", "n", "best_of", "max_tokens", "max_completion_tokens", "max_output_tokens",
                "min_tokens", "top_logprobs", "prompt_logprobs", "thinking_token_budget", "priority",
                "truncate_prompt_tokens",
            ),
            _WHOLE,
        ),
        "logprobs": _COUNT_OR_SWITCH,
        **dict.fromkeys(
            (
                "parallel_tool_calls", "ignore_eos", "skip_special_tokens", "include_stop_str_in_output",
                "use_beam_search", "include_reasoning",
            ),
            _SWITCH,
        ),
        **dict.fromkeys(("reasoning_effort", "chat_template", "truncation_side"), _TEXT),
        **dict.fromkeys(
            (
                "response_format", "structured_outputs", "reasoning", "output_config", "logit_bias",
                "vllm_xargs",
            ),
            _TABLE,
        ),
        "tools": _TABLES,
        **dict.fromkeys(("stop", "stop_sequences"), _TEXTS),
        "bad_words": _WORDS,
        **dict.fromkeys(("stop_token_ids", "allowed_token_ids"), _IDS),
    }
)  # fmt: skip


def _shown(value: object) -> str:
    """As both TOML and JSON write it, for the most part; a long value is cut."""
    return json.dumps(value, default=str, ensure_ascii=False)[:100]


def wrong_types(values: Mapping[str, Any]) -> Iterator[Fault]:
    """A fault for each known parameter whose value no engine would take; null takes one away and is none."""
    for name, value in values.items():
        if name in KINDS and value is not None:
            fits, meant = KINDS[name]
            if not fits(value):
                yield Fault((name,), f"must be {meant}; it is {_shown(value)}")
