"""How many tokens vLLM says its KV cache holds, for models of full attention and hybrids with GDN layers.

As `get_kv_cache_groups`, `_align_hybrid_block_size` and `get_max_concurrency_for_kv_cache_config` of 0.32 do
it for one GPU without speculative decoding. Sliding windows, MLA and Mamba2 are not here.
"""

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True, slots=True)
class LinearLayers:
    """The Gated DeltaNet layers of a hybrid: a state of fixed size, its recurrent part in float32."""

    layers: int
    key_heads: int
    value_heads: int
    head_dim: int = 128
    convolution: int = 4

    @property
    def state_bytes(self) -> int:
        """What one layer keeps for one request."""
        channels = 2 * self.head_dim * self.key_heads + self.head_dim * self.value_heads
        return (self.convolution - 1) * channels * 2 + self.value_heads * self.head_dim**2 * 4


@dataclass(frozen=True, slots=True)
class Shape:
    """The full-attention layers of a model and, in a hybrid, its linear ones."""

    layers: int
    kv_heads: int
    head_dim: int
    linear: LinearLayers | None = None


@dataclass(frozen=True, slots=True)
class KVCache:
    """What vLLM makes of the memory: `tokens` is the number in its log, no true capacity."""

    blocks: int
    block_tokens: int
    blocks_per_request: int
    tokens: int

    @property
    def concurrency(self) -> float:
        """How many requests of full length fit at once."""
        return self.blocks / self.blocks_per_request


def size(shape: Shape, gib: float, max_model_len: int, *, element_bytes: int = 2, block: int = 16) -> KVCache:
    """The cache that `gib` GiB hold, with prefix caching on; `block` is the backend's smallest."""
    token_bytes = shape.kv_heads * 2 * shape.head_dim * element_bytes
    linear = shape.linear
    # A hybrid's block is as long as the state of a linear layer is large: one page size for all groups.
    block_tokens = block * _ceil(linear.state_bytes, block * token_bytes) if linear else block
    # Groups are as large as the smaller kind of layers; all of them share one pool of blocks.
    group_layers = min(shape.layers, linear.layers) if linear else shape.layers
    states = 2 * _ceil(linear.layers, group_layers) if linear else 0
    blocks = int(gib * GIB) // (group_layers * block_tokens * token_bytes)
    per_request = _ceil(max_model_len, block_tokens) + states
    return KVCache(blocks, block_tokens, per_request, int(blocks / per_request * max_model_len))


def _ceil(amount: int, unit: int) -> int:
    return -(-amount // unit)
