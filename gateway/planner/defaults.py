"""What a config.json leaves out, as the configuration class that vLLM would take fills it in."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.planner.fields import Fields

# A model's own config without one of these is a fragment: to name it helps more than a class's size.
_SIZE = frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"})
# Names of one and the same field, of which a config has one.
_SAME = (
    {"num_experts", "n_routed_experts", "num_local_experts"},
    {"num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk"},
    {"n_groups", "mamba_n_groups"},
    {"conv_kernel", "mamba_d_conv"},
    {"n_positions", "max_position_embeddings"},
)


def filled(config: Fields, model_type: str, *, part: bool) -> Fields:
    """The config with the fields that it does not have; a null stays.

    A `part` is the text model inside a config of more: makers leave out even its size.
    """
    missing = {
        name: value
        for name, value in _of(model_type).items()
        if (part or name not in _SIZE) and not _names(name) & config.values.keys()
    }
    return replace(config, values={**missing, **config.values})


def ties_embeddings(model_type: str) -> bool | None:
    """Whether the output layer is the embedding where nothing says so; None for classes not known here."""
    found = _of(model_type).get("tie_word_embeddings")
    return None if found is None else bool(found)


def _names(name: str) -> set[str]:
    return next((names for names in _SAME if name in names), {name})


def _of(model_type: str) -> Mapping[str, Any]:
    """The fields of a text model's class, also by the name of what it is part of."""
    known = _table()
    return known.get(model_type) or known.get(f"{model_type}_text") or {}


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("gateway.planner").joinpath("defaults.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))
