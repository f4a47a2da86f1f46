"""How many weights see images, counted from a vision_config: no token of text reads them."""

from gateway.planner.fields import Fields

_GATED = frozenset({"gemma4_vision", "pixtral"})
_MOST = 10**6


def count(config: Fields) -> int | None:
    """Those of an encoder of equal layers, of its patches and of its merger; None if fields do not tell.

    Norms and biases are left out, as in the text model. Nothing is refused: text needs none of it.
    """
    depth = _whole(config, "depth") or _whole(config, "num_hidden_layers")
    hidden, width = _whole(config, "hidden_size"), _whole(config, "intermediate_size")
    if not (depth and hidden and width):
        return None
    matrices = 3 if config.values.get("model_type") in _GATED else 2
    layers = depth * (4 * hidden**2 + matrices * hidden * width)
    return layers + _patches(config, hidden) + _merger(config, hidden)


def _whole(config: Fields, name: str) -> int:
    """The field, or 0 where it is none that can be counted with."""
    value = config.values.get(name)
    return value if type(value) is int and 0 <= value <= _MOST else 0


def _patches(config: Fields, hidden: int) -> int:
    pixels = _whole(config, "patch_size") ** 2 * max(1, _whole(config, "temporal_patch_size"))
    axes = 2 * _whole(config, "position_embedding_size")
    return (3 * pixels + _whole(config, "num_position_embeddings") + axes) * hidden


def _merger(config: Fields, hidden: int) -> int:
    """Of Qwen's encoders: what joins neighbouring patches, and is as wide as the text model behind that."""
    merged = hidden * _whole(config, "spatial_merge_size") ** 2
    return merged * (merged + _whole(config, "out_hidden_size"))
