"""The page of each layer: what one block of the KV cache costs it, as vLLM's `v1/kv_cache_interface.py`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Latent, Layer, Shape, State

# Bytes of a head's keys or values of one token, from the width of the head.
_HEAD_BYTES: MappingProxyType[str, Callable[[int], int]] = MappingProxyType(
    {
        **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2"), lambda width: width),
        **dict.fromkeys(("bfloat16", "float16"), lambda width: 2 * width),
        **dict.fromkeys(("int8_per_token_head", "fp8_per_token_head"), lambda width: width + 4),
        "int4_per_token_head": lambda width: width // 2 + 4,
        "nvfp4": lambda width: width // 2 + width // 16,
    }
)
_LATENT_BYTES = MappingProxyType({"fp8_ds_mla": 656, "nvfp4_ds_mla": 352})
LATENT_TYPES = frozenset(_LATENT_BYTES)
CACHE_TYPES = ("auto", *_HEAD_BYTES, *_LATENT_BYTES)


@dataclass(frozen=True, slots=True)
class Engine:
    """How vLLM is run, as far as its KV cache depends on it.

    `block_size` is None where the operator sets none. `default_block` is what the attention backend prefers
    then, `kernel_block` the smallest it takes. `batches` is how many batches are under way at once;
    `float32_states` tells whether vLLM makes recurrent states float32, as on CPUs with AVX-512 BF16.
    """

    max_model_len: int
    max_num_batched_tokens: int
    kv_cache_dtype: str = "auto"
    prefix_caching: bool = True
    block_size: int | None = None
    speculative_tokens: int = 0
    tensor_parallel_size: int = 1
    default_block: int = 16
    kernel_block: int = 16
    batches: int = 2
    float32_states: bool = False

    @property
    def in_flight_tokens(self) -> int:
        """Tokens that are scheduled but not settled (`VllmConfig.max_in_flight_tokens`)."""
        return self.batches * self.max_num_batched_tokens

    @property
    def block(self) -> int:
        """The block before hybrids align it."""
        return self.block_size or self.default_block


@dataclass(frozen=True, slots=True)
class Page:
    """One layer's cache: `bytes_a_block` bytes for `block_tokens` tokens, or a state.

    Layers whose pages are equal, window and all, may share a group.
    """

    layer: Layer
    block_tokens: int
    bytes_a_block: int


def pages(shape: Shape, engine: Engine) -> tuple[Page, ...]:
    """The pages of all layers, in their order, those of a draft head included, and aligned in a hybrid.

    Raises PlanProblem if the cache's type is not known or does not go with the model.
    """
    block, state_page = _aligned(shape, engine)
    drafts = shape.draft_layers if engine.speculative_tokens else ()
    return tuple(_page(layer, shape, engine, block, state_page) for layer in (*shape.layers, *drafts))


def _page(layer: Layer, shape: Shape, engine: Engine, block: int, state_page: int | None) -> Page:
    if isinstance(layer, State):
        tokens = block if engine.prefix_caching else engine.max_model_len
        return Page(layer, tokens, state_page or state_bytes(layer, shape, engine))
    if isinstance(layer, Attention):
        layer = replace(layer, kv_heads=max(1, layer.kv_heads // engine.tensor_parallel_size))
        if layer.window:
            # `_largest_kernel_block_within`: the model's block, rounded to what the backend takes.
            block = max(engine.kernel_block, block // engine.kernel_block * engine.kernel_block)
    return Page(layer, block, block * token_bytes(layer, shape, engine))


def token_bytes(layer: Attention | Latent, shape: Shape, engine: Engine) -> int:
    """What one token costs one such layer; the layer's heads are those of one GPU."""
    named = engine.kv_cache_dtype
    if named == "auto":
        named = shape.quantization.kv_cache_dtype
    if isinstance(layer, Latent) and named in _LATENT_BYTES:
        return _LATENT_BYTES[named]
    if named == "auto":
        size: Callable[[int], int] = lambda width: shape.dtype_bytes * width  # noqa: E731
    elif named in _HEAD_BYTES:
        size = _HEAD_BYTES[named]
    elif named in _LATENT_BYTES:
        raise PlanProblem(f"--kv-cache-dtype {named} goes with multi-head latent attention alone: take fp8.")
    else:
        raise PlanProblem(
            f"--kv-cache-dtype {named} is not planned for here: choose one of {', '.join(CACHE_TYPES)}."
        )
    if isinstance(layer, Latent):
        # One vector, but with both scales (`MLACommonBackend.customize_spec`).
        return size(layer.width) + (4 if named.endswith("per_token_head") else 0)
    return layer.kv_heads * (size(layer.key_dim) + size(layer.value_dim))


def state_bytes(state: State, shape: Shape, engine: Engine) -> int:
    """What one request costs such a layer: `MambaStateShapeCalculator`, on one of the GPUs."""
    ranks = engine.tensor_parallel_size
    groups = state.groups if state.groups % ranks == 0 else ranks
    channels = (state.inner + groups * state.group_width) // ranks
    drafted = engine.speculative_tokens if state.kind in ("gdn", "mamba2") else 0
    convolution = (state.rows + drafted) * channels * shape.dtype_bytes
    widened = engine.float32_states and not state.type_is_said
    element = 4 if widened else state.recurrent_bytes
    return convolution + state.heads // ranks * state.head_elements * element


def _aligned(shape: Shape, engine: Engine) -> tuple[int, int | None]:
    """The block, and the page of states in a hybrid: `platforms/interface.py::_align_hybrid_block_size`."""
    if not (shape.aligning and shape.model_attention):
        return engine.block, None
    attention = shape.model_attention
    if isinstance(attention, Attention):
        heads = max(1, attention.kv_heads // engine.tensor_parallel_size)
        attention = replace(attention, kv_heads=heads)
    token = token_bytes(attention, shape, engine)
    state = max(state_bytes(one, shape, engine) for one in shape.aligning)
    unit = max(engine.kernel_block, engine.block)
    block = unit * ceil(state, unit * token)
    block = engine.kernel_block * ceil(block, engine.kernel_block)
    block = max(block, engine.block)
    return block, block * token


def ceil(amount: int, unit: int) -> int:
    """How many units it takes."""
    return -(-amount // unit)
