"""How many weights a model has, counted from its config.json: an estimate where no weights are at hand.

Norms, biases and rotary tables are left out: under a thousandth.
"""

import math
from collections.abc import Sequence

from gateway.planner.fields import Fields
from gateway.planner.shape import Attention, Latent, Layer, Parameters, State
from gateway.planner.states import ATTENTION_FREE, nemotron_kinds

_LLAMA4 = frozenset({"llama4", "llama4_text"})


def count(config: Fields, layers: Sequence[Layer], vocabulary: int, hidden: int, *, tied: bool) -> Parameters:
    """The weights of the text model. Raises PlanProblem, naming the field that is missing."""
    blocks = _blocks(config)
    mixers = sum(_mixer(config, layer, hidden) for layer in layers) + _sharing(config, layers, hidden)
    mixers += _of_each_layer(config, hidden)
    table = vocabulary * hidden
    if not (experts := _experts(config)):
        dense = mixers + blocks * _feed_forward(config, hidden, _width(config))
        return Parameters(table, table, tied, dense, looked_up=_looked_up(config))
    moe = _moe_layers(config, blocks)
    both = config.flag("enable_moe_block", default=False)
    plain = blocks if both else blocks - moe
    width = config.integer("moe_intermediate_size", "intermediate_size", least=1)
    dense = mixers + plain * _feed_forward(config, hidden, _width(config))
    dense += moe * (_feed_forward(config, hidden, _shared(config, width)) + experts * hidden)
    return Parameters(
        table,
        table,
        tied,
        dense,
        expert=_feed_forward(config, config.integer("moe_latent_size", default=hidden), width),
        experts=experts,
        experts_per_token=_chosen(config, experts),
        moe_layers=moe,
        looked_up=_looked_up(config),
    )


def _experts(config: Fields) -> int:
    """How many each sparse layer has; none without such layers, whatever a class's default is."""
    if _separate(config) and "moe" not in nemotron_kinds(config):
        return 0
    return config.integer("num_experts", "n_routed_experts", "num_local_experts", default=0)


def _chosen(config: Fields, experts: int) -> int:
    names = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk")
    chosen = config.integer(*names, least=1)
    if chosen > experts:
        name = next(name for name in names if config.has(name))
        raise config.missing(name, f"is {chosen:,} of {experts:,} experts")
    return chosen


def widest(config: Fields, hidden: int) -> int:
    """The most activations that a token has between two matrices: of its feed-forward part or experts."""
    if not (experts := _experts(config)):
        return 2 * _width(config)
    width = config.integer("moe_intermediate_size", "intermediate_size", default=4 * hidden)
    return _chosen(config, experts) * (2 * width + hidden)


def _mixer(config: Fields, layer: Layer, hidden: int) -> int:
    if isinstance(layer, State):
        return _state(config, layer, hidden)
    queries = config.integer("num_attention_heads", least=1)
    if isinstance(layer, Latent):
        return _latent(config, hidden, queries)
    return _attention(config, layer, hidden, queries)


def _attention(config: Fields, layer: Attention, hidden: int, queries: int) -> int:
    gated = config.text("model_type", default="").startswith(("qwen3_next", "qwen3_5"))
    projections = queries * layer.key_dim * (3 if gated else 2)
    return hidden * (projections + layer.kv_heads * (layer.key_dim + layer.value_dim))


def _sharing(config: Fields, layers: Sequence[Layer], hidden: int) -> int:
    """Of layers that use another's keys and values: they have queries and an output alone."""
    attention = [layer for layer in layers if isinstance(layer, Attention)]
    if not _kind(config).startswith("gemma") or not attention:
        return 0
    shared = config.integer("num_hidden_layers", least=1) - len(attention)
    return shared * 2 * hidden * config.integer("num_attention_heads", least=1) * attention[0].key_dim


def _looked_up(config: Fields) -> int:
    """Embeddings that each layer of a Gemma 3n or 4 has of its own."""
    width = config.integer("hidden_size_per_layer_input", default=0)
    names = ("vocab_size_per_layer_input", "vocab_size")
    return config.integer("num_hidden_layers", least=1) * width * config.integer(*names) if width else 0


def _of_each_layer(config: Fields, hidden: int) -> int:
    """What brings those embeddings into the layers, and Gemma 3n's alternating updates."""
    width = config.integer("hidden_size_per_layer_input", default=0)
    if not width:
        return 0
    count = config.integer("num_hidden_layers", least=1)
    inputs = config.integer("altup_num_inputs", default=4) if _kind(config).startswith("gemma3n") else 0
    low = config.integer("laurel_rank", default=64) if inputs else 0
    updates = 2 * (inputs - 1) * hidden**2 if inputs else 0
    return count * hidden * (3 * width + 2 * low) + updates


def _latent(config: Fields, hidden: int, queries: int) -> int:
    rank, rope = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    plain, value = config.integer("qk_nope_head_dim"), config.integer("v_head_dim")
    query = queries * (plain + rope)
    low = config.integer("q_lora_rank", default=0)
    asking = low * (hidden + query) if low else hidden * query
    return asking + hidden * (rank + rope) + rank * queries * (plain + value) + queries * value * hidden


def _state(config: Fields, layer: State, hidden: int) -> int:
    channels = layer.inner + layer.groups * layer.group_width
    if layer.kind == "gdn":
        values = layer.heads * math.isqrt(layer.head_elements)
        return hidden * (channels + values + 2 * layer.heads) + values * hidden
    if layer.kind == "short_conv":
        return 4 * hidden * layer.inner
    if layer.kind == "mamba1":
        steps = 2 * _step_rank(config, hidden) + 3 * layer.head_elements + layer.rows + 1
        return layer.inner * (3 * hidden + steps)
    return hidden * (channels + layer.inner + layer.heads) + layer.inner * hidden


def _step_rank(config: Fields, hidden: int) -> int:
    name = "mamba_dt_rank" if config.has("mamba_dt_rank") else "time_step_rank"
    automatic = config.values.get(name, "auto") == "auto"
    return -(-hidden // 16) if automatic else config.integer(name)


def _feed_forward(config: Fields, hidden: int, width: int) -> int:
    """Two matrices with a plain activation, three with a gate."""
    plain = config.text("model_type", default="") in ("nemotron_h", "nemotron", "gpt2", "opt", "falcon")
    return (2 if plain else 3) * hidden * width


def _width(config: Fields) -> int:
    """Of a feed-forward part without experts."""
    kind = _kind(config)
    if kind == "lfm2":
        return _adjusted(config, config.integer("block_ff_dim", "intermediate_size", default=12_288))
    if kind in _LLAMA4:
        return config.integer("intermediate_size_mlp", default=16_384)
    default = 4 * config.integer("hidden_size") if kind in ("gpt2", "falcon") else 0
    return config.integer("intermediate_size", "ffn_hidden_size", "n_inner", default=default)


def _adjusted(config: Fields, width: int) -> int:
    """`Lfm2MLP`: two thirds, rounded up to a multiple."""
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return width
    scaled = int(config.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
    multiple = config.integer("block_multiple_of", default=256, least=1)
    return multiple * -(-scaled // multiple)


def _kind(config: Fields) -> str:
    return config.text("model_type", default="")


def _shared(config: Fields, width: int) -> int:
    """The width of the experts that every token passes."""
    if _kind(config) in _LLAMA4:
        return width
    if config.has("n_shared_experts"):
        own = config.integer("moe_shared_expert_intermediate_size", default=width)
        return config.integer("n_shared_experts") * own
    return config.integer("shared_expert_intermediate_size", "shared_intermediate_size", default=0)


def _separate(config: Fields) -> bool:
    """Whether feed-forward parts are layers of their own (Nemotron-H)."""
    return _kind(config) == "nemotron_h"


def _blocks(config: Fields) -> int:
    """Feed-forward parts, sparse ones included."""
    if _separate(config):
        return sum(kind in ("mlp", "moe") for kind in nemotron_kinds(config))
    return 0 if _kind(config) in ATTENTION_FREE else config.integer("num_hidden_layers", least=1)


def _moe_layers(config: Fields, blocks: int) -> int:
    if _separate(config):
        return nemotron_kinds(config).count("moe")
    if _kind(config) == "jamba":
        period = config.integer("expert_layer_period", default=2, least=1)
        offset = config.integer("expert_layer_offset", default=1)
        return sum(index % period == offset for index in range(blocks))
    if kinds := config.names("mlp_layer_types"):
        return sum(kind == "sparse" for kind in kinds)
    first = config.integer("first_k_dense_replace", "num_dense_layers", default=0)
    step = config.integer("decoder_sparse_step", "interleave_moe_layer_step", default=1, least=1)
    only = config.numbers("mlp_only_layers") or ()
    return len([i for i in range(first, blocks) if (i + 1) % step == 0 and i not in only])
