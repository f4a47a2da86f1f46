"""Models whose layers keep a state of fixed size: Gated DeltaNet, Mamba 1 and 2, short convolutions.

The shapes are vLLM's `MambaStateShapeCalculator` (model_executor/layers/mamba/mamba_utils.py), the types
of their elements `model_executor/models/config.py` and each model's `get_mamba_state_dtype_from_config`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gateway.planner.attention import heads
from gateway.planner.fields import Fields
from gateway.planner.shape import Layer, State

# Which vLLM knows to be without attention. Other kinds may have no such layer either, and cache prefixes.
ATTENTION_FREE = frozenset({"mamba", "falcon_mamba", "mamba2"})
_BYTES = MappingProxyType({"float32": 4, "bfloat16": 2, "float16": 2})
_NEMOTRON = MappingProxyType(
    {
        **dict.fromkeys(("M", "mamba", "linear_attention"), "mamba"),
        **dict.fromkeys(("*", "attention", "full_attention"), "attention"),
        **dict.fromkeys(("-", "mlp"), "mlp"),
        **dict.fromkeys(("E", "moe"), "moe"),
    }
)


def reader(model_type: str) -> Callable[[Fields, int], tuple[Layer, ...]] | None:
    """What reads the layers of such a model, given its config and its type's bytes; None for all others."""
    if model_type.startswith(("qwen3_5", "qwen3_next")):
        return _delta_net
    return _READERS.get(model_type)


def _delta_net(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    state = _gated_delta(config, dtype_bytes)
    plain = heads(config)
    types = config.names("layer_types")
    count = config.integer("num_hidden_layers", least=1)
    if types is None:
        interval = config.integer("full_attention_interval", default=4, least=1)
        types = tuple("x" if (index + 1) % interval else "full_attention" for index in range(count))
    _check_count(config, "layer_types", types)
    return tuple(plain if kind == "full_attention" else state for kind in types)


def _check_count(config: Fields, name: str, kinds: Sequence[str]) -> None:
    count = config.integer("num_hidden_layers", least=1)
    if len(kinds) != count:
        raise config.missing(name, f"has {len(kinds)} entries for {count} layers")


def _gated_delta(config: Fields, dtype_bytes: int) -> State:
    keys, values = (
        config.integer("linear_num_key_heads", least=1),
        config.integer("linear_num_value_heads", least=1),
    )
    key_dim, value_dim = (
        config.integer("linear_key_head_dim", least=1),
        config.integer("linear_value_head_dim", least=1),
    )
    # Qwen3-Next's class never reads the field.
    own = config.text("model_type", default="qwen3_5").startswith("qwen3_5") and config.has("mamba_ssm_dtype")
    return State(
        "gdn",
        rows=config.integer("linear_conv_kernel_dim", least=1) - 1,
        inner=2 * key_dim * keys + value_dim * values,
        heads=values,
        head_elements=value_dim * key_dim,
        recurrent_bytes=_element(config, "mamba_ssm_dtype") if own else dtype_bytes,
        type_is_said=own,
    )


def nemotron_kinds(config: Fields) -> tuple[str, ...]:
    """What each layer of a Nemotron-H is: "mamba", "attention", "mlp" or "moe".

    Raises PlanProblem, naming the field, for what is none of them, and where none is of the first two.
    """
    name = next((name for name in ("layers_block_type", "layer_types") if config.has(name)), "")
    said: tuple[str, ...] = config.names(name) or () if name else ()
    if not said:
        name = "hybrid_override_pattern"
        said = tuple(config.text(name, default=""))
    if not said:
        raise config.missing("layers_block_type (or hybrid_override_pattern)")
    if unknown := sorted(set(said) - _NEMOTRON.keys()):
        raise config.missing(name, f"has {', '.join(unknown)[:80]}, which this kind has not")
    kinds = tuple(_NEMOTRON[one] for one in said)
    if not {"mamba", "attention"} & set(kinds):
        raise config.missing(name, "has neither Mamba nor attention layers, so that none keeps anything")
    return kinds


def _nemotron_h(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    """A pattern of letters or a list: Mamba2, attention, and layers without any memory."""
    kinds = nemotron_kinds(config)
    plain = replace(heads(config), window=config.integer("sliding_window", default=0) or None)
    kept: dict[str, Layer] = {"mamba": _nemotron_state(config, dtype_bytes), "attention": plain}
    return tuple(kept[kind] for kind in kinds if kind in kept)


def _nemotron_state(config: Fields, dtype_bytes: int) -> State:
    # Other types than float32 are kept on CPUs too.
    said = config.text("mamba_ssm_cache_dtype", default="float32")
    count, width = config.integer("mamba_num_heads", least=1), config.integer("mamba_head_dim", least=1)
    state = _mamba2(
        inner=count * width,
        groups=config.integer("mamba_n_groups", "n_groups"),
        heads=count,
        width=width,
        size=config.integer("ssm_state_size"),
        kernel=config.integer("mamba_d_conv", "conv_kernel"),
        element=dtype_bytes if said == "auto" else _element(config, "mamba_ssm_cache_dtype", "float32"),
    )
    return replace(state, type_is_said=said != "auto")


def unseen(config: Fields, model_type: str, dtype_bytes: int) -> State | None:
    """The state by which vLLM aligns blocks though no layer has one: a Nemotron-H of attention and more."""
    if model_type != "nemotron_h":
        return None
    kinds = set(nemotron_kinds(config))
    return None if "mamba" in kinds or kinds == {"attention"} else _nemotron_state(config, dtype_bytes)


def _granite(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    count = config.integer("num_hidden_layers", least=1)
    kinds = config.names("layer_types", "layers_block_type") or ("mamba",) * count
    _check_count(config, "layer_types", kinds)
    plain = heads(config)
    if all(kind in ("attention", "full_attention") for kind in kinds):
        return (plain,) * len(kinds)
    inner = config.integer("mamba_expand", default=2) * config.integer("hidden_size", least=1)
    state = _split_mamba2(config, inner, dtype_bytes)
    return tuple(plain if kind in ("attention", "full_attention") else state for kind in kinds)


def _falcon_h1(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    """Each layer has both."""
    if config.has("mamba_d_ssm"):
        inner = config.integer("mamba_d_ssm")
    else:
        inner = int(config.number("mamba_expand", default=2) * config.integer("hidden_size"))
    both = (heads(config), _split_mamba2(config, inner, dtype_bytes))
    return both * config.integer("num_hidden_layers", least=1)


def _split_mamba2(config: Fields, inner: int, dtype_bytes: int) -> State:
    count = config.integer("mamba_n_heads", least=1)
    automatic = config.values.get("mamba_d_head", "auto") == "auto"
    width = inner // count if automatic else config.integer("mamba_d_head", least=1)
    return _mamba2(
        inner=inner,
        groups=config.integer("mamba_n_groups", default=1),
        heads=count,
        width=width,
        size=config.integer("mamba_d_state", least=1),
        kernel=config.integer("mamba_d_conv", least=1),
        element=dtype_bytes,
    )


def _pure_mamba2(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    state = _mamba2(
        inner=int(config.number("expand", default=2) * config.integer("hidden_size", least=1)),
        groups=config.integer("n_groups", least=1),
        heads=config.integer("num_heads", least=1),
        width=config.integer("head_dim", least=1),
        size=config.integer("state_size", least=1),
        kernel=config.integer("conv_kernel", least=1),
        element=dtype_bytes,
    )
    return (state,) * config.integer("num_hidden_layers", least=1)


def _mamba2(
    *, inner: int, groups: int, heads: int, width: int, size: int, kernel: int, element: int
) -> State:
    return State(
        "mamba2",
        rows=kernel - 1,
        inner=inner,
        groups=groups,
        group_width=2 * size,
        heads=heads,
        head_elements=width * size,
        recurrent_bytes=element,
    )


def _jamba(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    inner = config.integer("mamba_expand", default=2) * config.integer("hidden_size", least=1)
    size, kernel = config.integer("mamba_d_state", default=16), config.integer("mamba_d_conv", default=4)
    state = _mamba1(inner, size, kernel, dtype_bytes)
    period = config.integer("attn_layer_period", default=8, least=1)
    offset = config.integer("attn_layer_offset", default=4)
    plain = heads(config)
    count = config.integer("num_hidden_layers", least=1)
    return tuple(plain if index % period == offset else state for index in range(count))


def _pure_mamba1(config: Fields, dtype_bytes: int) -> tuple[Layer, ...]:
    expanded = int(config.number("expand", default=2) * config.integer("hidden_size", least=1))
    inner = config.integer("intermediate_size", default=expanded, least=1)
    state = _mamba1(
        inner, config.integer("state_size", least=1), config.integer("conv_kernel", least=1), dtype_bytes
    )
    return (state,) * config.integer("num_hidden_layers", least=1)


def _mamba1(inner: int, size: int, kernel: int, element: int) -> State:
    return State(
        "mamba1", rows=kernel - 1, inner=inner, heads=inner, head_elements=size, recurrent_bytes=element
    )


def _short_conv(config: Fields, _: int) -> tuple[Layer, ...]:
    width = config.integer("conv_dim", "hidden_size", least=1)
    state = State("short_conv", rows=config.integer("conv_L_cache", least=1) - 1, inner=width)
    plain = heads(config)
    count = config.integer("num_hidden_layers", least=1)
    full = config.numbers("full_attn_idxs")
    if full is None and not config.has("layer_types") and config.text("model_type", default="") == "lfm2_moe":
        raise config.missing("layer_types")  # its class makes none up
    types = config.names("layer_types") or tuple(
        "full_attention" if full is None or index in full else "conv" for index in range(count)
    )
    _check_count(config, "layer_types", types)
    return tuple(plain if kind == "full_attention" else state for kind in types)


def _element(config: Fields, name: str, default: str | None = None) -> int:
    """Bytes of an element of the type that a field names."""
    named = config.text(name) if default is None else config.text(name, default=default)
    if named not in _BYTES:
        raise config.missing(name, f"is {named!r}, and one of {', '.join(_BYTES)} is needed")
    return _BYTES[named]


_READERS: Mapping[str, Callable[[Fields, int], tuple[Layer, ...]]] = MappingProxyType(
    {
        "nemotron_h": _nemotron_h,
        "granitemoehybrid": _granite,
        "falcon_h1": _falcon_h1,
        "jamba": _jamba,
        "mamba": _pure_mamba1,
        "falcon_mamba": _pure_mamba1,
        "mamba2": _pure_mamba2,
        **dict.fromkeys(("lfm2", "lfm2_moe"), _short_conv),
    }
)
