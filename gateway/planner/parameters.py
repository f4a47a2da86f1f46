"""How many weights a model has, counted from its config.json: an estimate where no weights are at hand.

Norms, biases and rotary tables are left out: under a thousandth.
"""

import math
from collections.abc import Sequence

from gateway.planner.fields import Fields
from gateway.planner.shape import Attention, Latent, Layer, Parameters, State


def count(config: Fields, layers: Sequence[Layer], vocabulary: int, hidden: int, *, tied: bool) -> Parameters:
    """The weights of the text model. Raises PlanProblem, naming the field that is missing."""
    mixers = sum(_mixer(config, layer, hidden) for layer in layers)
    blocks = _blocks(config)
    experts = config.integer("num_experts", "n_routed_experts", "num_local_experts", default=0)
    if not experts:
        dense = mixers + blocks * _feed_forward(config, hidden, _width(config))
        return Parameters(vocabulary * hidden, vocabulary * hidden, tied, dense)
    moe = _moe_layers(config, blocks)
    both = config.flag("enable_moe_block", default=False)
    plain = blocks if both else (0 if _separate(config) else blocks - moe)
    width = config.integer("moe_intermediate_size", "intermediate_size", least=1)
    dense = mixers + plain * _feed_forward(config, hidden, _width(config))
    dense += moe * (_feed_forward(config, hidden, _shared(config, width)) + experts * hidden)
    return Parameters(
        vocabulary * hidden,
        vocabulary * hidden,
        tied,
        dense,
        expert=_feed_forward(config, config.integer("moe_latent_size", default=hidden), width),
        experts=experts,
        experts_per_token=config.integer(
            "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", least=1
        ),
        moe_layers=moe,
    )


def widest(config: Fields, hidden: int) -> int:
    """The most activations that a token has between two matrices: of its feed-forward part or experts."""
    experts = config.integer("num_experts_per_tok", "top_k_experts", default=0)
    width = config.integer("moe_intermediate_size", "intermediate_size", default=4 * hidden)
    return experts * (2 * width + hidden) if experts else 2 * _width(config)


def _mixer(config: Fields, layer: Layer, hidden: int) -> int:
    if isinstance(layer, State):
        return _state(layer, hidden)
    queries = config.integer("num_attention_heads", least=1)
    if isinstance(layer, Latent):
        return _latent(config, hidden, queries)
    return _attention(config, layer, hidden, queries)


def _attention(config: Fields, layer: Attention, hidden: int, queries: int) -> int:
    gated = config.text("model_type", default="").startswith(("qwen3_next", "qwen3_5"))
    projections = queries * layer.key_dim * (3 if gated else 2)
    return hidden * (projections + layer.kv_heads * (layer.key_dim + layer.value_dim))


def _latent(config: Fields, hidden: int, queries: int) -> int:
    rank, rope = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    plain, value = config.integer("qk_nope_head_dim"), config.integer("v_head_dim")
    query = queries * (plain + rope)
    low = config.integer("q_lora_rank", default=0)
    asking = low * (hidden + query) if low else hidden * query
    return asking + hidden * (rank + rope) + rank * queries * (plain + value) + queries * value * hidden


def _state(layer: State, hidden: int) -> int:
    channels = layer.inner + layer.groups * layer.group_width
    if layer.kind == "gdn":
        values = layer.heads * math.isqrt(layer.head_elements)
        return hidden * (channels + values + 2 * layer.heads) + values * hidden
    if layer.kind == "short_conv":
        return 4 * hidden * layer.inner
    return hidden * (channels + layer.inner + layer.heads) + layer.inner * hidden


def _feed_forward(config: Fields, hidden: int, width: int) -> int:
    """Two matrices with a plain activation, three with a gate."""
    plain = config.text("model_type", default="") in ("nemotron_h", "nemotron", "gpt2", "opt")
    return (2 if plain else 3) * hidden * width


def _width(config: Fields) -> int:
    return config.integer("intermediate_size", "ffn_hidden_size", "n_inner", default=0)


def _shared(config: Fields, width: int) -> int:
    """The width of the experts that every token passes."""
    if config.has("n_shared_experts"):
        own = config.integer("moe_shared_expert_intermediate_size", default=width)
        return config.integer("n_shared_experts") * own
    return config.integer("shared_expert_intermediate_size", "shared_intermediate_size", default=0)


def _separate(config: Fields) -> bool:
    """Whether feed-forward parts are layers of their own (Nemotron-H)."""
    return config.has("hybrid_override_pattern") or config.has("layers_block_type")


def _blocks(config: Fields) -> int:
    """Feed-forward parts, sparse ones included."""
    if not _separate(config):
        return config.integer("num_hidden_layers", least=1)
    pattern = config.text("hybrid_override_pattern", default="")
    kinds = config.names("layers_block_type") or tuple(pattern)
    return sum(kind in ("mlp", "moe", "-", "E") for kind in kinds)


def _moe_layers(config: Fields, blocks: int) -> int:
    if _separate(config):
        pattern = config.text("hybrid_override_pattern", default="")
        return sum(kind in ("moe", "E") for kind in config.names("layers_block_type") or tuple(pattern))
    if kinds := config.names("mlp_layer_types"):
        return sum(kind == "sparse" for kind in kinds)
    first = config.integer("first_k_dense_replace", "num_dense_layers", default=0)
    step = config.integer("decoder_sparse_step", "interleave_moe_layer_step", default=1, least=1)
    only = config.values.get("mlp_only_layers") or ()
    return len([i for i in range(first, blocks) if (i + 1) % step == 0 and i not in only])
