"""Attention layers from a config.json: which are full, sliding or chunked, and how wide their heads are.

The source of each rule is the model's class in vLLM 0.32 (`model_executor/models`) and, for lists of layer
types that a config leaves out, its configuration class in transformers 5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gateway.planner.fields import Fields
from gateway.planner.shape import Attention, Latent

# In the order of vLLM's `get_total_num_kv_heads`.
_KEY_HEADS = (
    "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups",
)  # fmt: skip
# Whose models never read head_dim.
_UNREAD_WIDTHS = frozenset({"qwen2", "qwen2_moe"})
FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
_NAMES = MappingProxyType({"attention": FULL, "window_attention": SLIDING})

# Of vLLM's `ModelArchConfigConvertorBase.is_deepseek_mla`, those whose caches have nothing besides; and
# mistral4, which reaches the same class through transformers.
LATENT_TYPES = frozenset(
    {
        "axk1",
        "deepseek_v2",
        "deepseek_v3",
        "glm4_moe_lite",
        "kimi_k2",
        "longcat_flash",
        "mistral4",
        "pangu_ultra_moe",
    }
)


def heads(config: Fields) -> Attention:
    """One full-attention layer as the config describes most of them."""
    queries = config.integer("num_attention_heads", least=1)
    keys = config.integer(*_KEY_HEADS, default=queries, least=1)
    if config.flag("multi_query", default=False) and not config.flag(
        "new_decoder_architecture", default=False
    ):
        keys = 1  # Falcon's first generation, whatever else stands there
    if queries % keys:
        raise config.missing("num_key_value_heads", f"is {keys}, which does not divide {queries} query heads")
    width = config.integer("head_dim", default=0)
    if not width or config.text("model_type", default="") in _UNREAD_WIDTHS:
        width = config.integer("hidden_size", least=1) // queries
    if not width:
        raise config.missing("num_attention_heads", f"is {queries:,}, more than hidden_size has channels")
    return Attention(keys, width, width)


def latent(config: Fields) -> Latent:
    """One layer of multi-head latent attention."""
    return Latent(config.integer("kv_lora_rank", least=1) + config.integer("qk_rope_head_dim"))


def layers(config: Fields, model_type: str) -> tuple[Attention, ...]:
    """All layers of a model that has no others. Raises PlanProblem, naming the field that is missing."""
    if model_type.startswith("gemma4"):
        return _gemma4(config)
    if model_type.startswith("gemma3n"):
        return _gemma3n(config)
    plain = heads(config)
    return tuple(_of_type(config, plain, kind) for kind in layer_types(config, model_type))


def layer_types(config: Fields, model_type: str) -> tuple[str, ...]:
    """What kind each layer is, in order: as the config says or, if it does not, as vLLM would take it."""
    count = config.integer("num_hidden_layers", least=1)
    if model_type == "gpt_oss":  # vLLM's model alternates by itself, whatever the list says
        return _every(2, count)
    named = config.names("layer_types")
    if named is not None and len(named) != count:
        raise config.missing("layer_types", f"has {len(named)} entries for {count} layers")
    if model_type in _LLAMA4:  # its model reads no_rope_layers alone
        return _llama4(config, count)
    types = tuple(_NAMES.get(name, name) for name in named or ())
    if unknown := set(types) - {FULL, SLIDING, CHUNKED}:
        raise config.missing("layer_types", f"has {', '.join(sorted(unknown))}, which this kind has not")
    if model_type in _SWITCHED:
        return _switched(config, count, types, model_type)
    return types or tuple(_UNNAMED.get(model_type, _unnamed)(config, count))


def _of_type(config: Fields, plain: Attention, kind: str) -> Attention:
    if kind == SLIDING:
        window = _window(config)
        return replace(plain, window=window) if window else plain
    if kind == CHUNKED:
        return replace(plain, chunk=_reach(config, "attention_chunk_size"))
    return plain


def _window(config: Fields) -> int | None:
    return _reach(config, "sliding_window")


def _reach(config: Fields, name: str) -> int | None:
    """How far a layer sees, or None where null or 0 switches that off."""
    switched_off = name in config.values and not config.values[name]
    return None if switched_off else config.integer(name, least=1)


def _gemma3n(config: Fields) -> tuple[Attention, ...]:
    """The last `num_kv_shared_layers` use the cache of the layers before them, where there are any."""
    types = layer_types(config, "gemma3n")
    first = len(types) - config.integer("num_kv_shared_layers", default=0)
    plain = heads(config)
    kept = [kind for index, kind in enumerate(types) if index < first or first - 1 - (kind == SLIDING) < 0]
    return tuple(_of_type(config, plain, kind) for kind in kept)


def _gemma4(config: Fields) -> tuple[Attention, ...]:
    """Full layers have heads of their own; the last `num_kv_shared_layers` keep nothing themselves."""
    types = list(layer_types(config, "gemma4"))
    types[-1] = FULL  # transformers forces it
    shared = config.integer("num_kv_shared_layers", default=0)
    kept = types[: max(0, len(types) - shared)]
    if lost := sorted(set(types) - set(kept)):
        why = f"is {shared} of {len(types)} layers, which leaves none that is {lost[0]} to share"
        raise config.missing("num_kv_shared_layers", why)
    plain = heads(config)
    return tuple(
        _of_type(config, _gemma4_heads(config, plain, index, kind), kind) for index, kind in enumerate(kept)
    )


def _gemma4_heads(config: Fields, plain: Attention, index: int, kind: str) -> Attention:
    if each := config.part("per_layer_config"):
        own = each.part(str(index))
        if own is None:
            return plain
        keys = own.integer("num_key_value_heads", default=plain.kv_heads, least=1)
        width = own.integer("head_dim", default=plain.key_dim, least=1)
        return Attention(keys, width, width)
    if kind != FULL:
        return plain
    width, keys = config.integer("global_head_dim", default=512, least=1), plain.kv_heads
    if config.flag("attention_k_eq_v", default=False):
        keys = config.integer("num_global_key_value_heads", default=keys, least=1)
    return Attention(keys, width, width)


def _every(period: int, count: int) -> tuple[str, ...]:
    """Each `period`th layer is full, the others slide."""
    return tuple(FULL if (index + 1) % period == 0 else SLIDING for index in range(count))


def _unnamed(config: Fields, count: int) -> Sequence[str]:
    """vLLM takes a window without a list of types for all layers."""
    return (SLIDING if config.has("sliding_window") and config.integer("sliding_window") else FULL,) * count


def _switched(config: Fields, count: int, types: Sequence[str], model_type: str) -> tuple[str, ...]:
    """Qwen2 and 3: a window counts only if it is switched on, and for all layers or none."""
    if not config.flag("use_sliding_window", default=False) or not _window(config):
        return (FULL,) * count
    dense = model_type in _DENSE_QWEN
    first = config.integer("max_window_layers", default=28)
    if not types:  # experts know no first layer
        types = [SLIDING if not dense or index >= first else FULL for index in range(count)]
    if dense and len(set(types)) > 1 and first != count:  # models/qwen2.py refuses it
        raise config.missing("max_window_layers", f"is {first} of {count} layers, which vLLM does not serve")
    return (SLIDING if set(types) == {SLIDING} else FULL,) * count


def _by(period: int) -> Callable[[Fields, int], Sequence[str]]:
    return lambda _, count: _every(period, count)


def _patterned(default: int) -> Callable[[Fields, int], Sequence[str]]:
    def types(config: Fields, count: int) -> Sequence[str]:
        return _every(config.integer("sliding_window_pattern", default=default, least=1), count)

    return types


def _llama4(config: Fields, count: int) -> tuple[str, ...]:
    """Layers with rotary positions are chunked, each fourth has none and is full."""
    listed = config.numbers("no_rope_layers")
    step = config.integer("no_rope_layer_interval", default=4, least=1)
    rotary = listed or [int((index + 1) % step != 0) for index in range(count)]
    if len(rotary) != count:
        raise config.missing("no_rope_layers", f"has {len(rotary)} entries for {count} layers")
    return tuple(CHUNKED if one else FULL for one in rotary)


def _muse(_: Fields, count: int) -> Sequence[str]:
    return tuple(FULL if (count - 1 - index) % 4 == 0 else SLIDING for index in range(count))


def _full(_: Fields, count: int) -> Sequence[str]:
    return (FULL,) * count


_DENSE_QWEN = frozenset({"qwen2", "qwen3"})
_SWITCHED = _DENSE_QWEN | {"qwen3_moe", "qwen3_vl_moe_text"}
_LLAMA4 = frozenset({"llama4", "llama4_text"})
_UNNAMED: Mapping[str, Callable[[Fields, int], Sequence[str]]] = MappingProxyType(
    {
        "gemma2": _by(2),
        "gemma3n": _by(5),
        "gemma4": _by(6),
        "olmo3": _by(4),
        **dict.fromkeys(("gemma3", "gemma3_text"), _patterned(6)),
        "cohere2": _patterned(4),
        **dict.fromkeys(("muse_glimmer", "muse_glimmer_text"), _muse),
        **dict.fromkeys(("laguna", "qwen2_moe"), _full),
    }
)
