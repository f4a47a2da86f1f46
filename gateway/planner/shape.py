"""What a model looks like to vLLM's KV cache: its layers, as values. No file is read here."""

from dataclasses import dataclass
from typing import Literal

StateKind = Literal["gdn", "mamba1", "mamba2", "short_conv"]


@dataclass(frozen=True, slots=True)
class Attention:
    """One layer that keeps keys and values: of all tokens, of a sliding `window`, or of local `chunk`s."""

    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Latent:
    """One layer of multi-head latent attention: a single vector for each token, never divided."""

    width: int


@dataclass(frozen=True, slots=True)
class State:
    """One layer with a state of fixed size for each request: a convolution's rows and a recurrent part.

    `inner` channels are divided over GPUs; `groups` of `group_width` more channels are, and repeated where
    there are fewer groups than GPUs. `recurrent_bytes` is the size of one element of the recurrent part;
    `type_is_said` tells whether the config names its type.
    """

    kind: StateKind
    rows: int
    inner: int
    groups: int = 0
    group_width: int = 0
    heads: int = 0
    head_elements: int = 0
    recurrent_bytes: int = 2
    type_is_said: bool = False


Layer = Attention | Latent | State


@dataclass(frozen=True, slots=True)
class Parameters:
    """How many weights a model has, by how they are read for one token.

    `dense` are read for every token; of each of `moe_layers` layers, `experts_per_token` out of `experts`
    experts of `expert` weights are. `embedding` is looked up, `head` is read whole (the same, if tied), and
    `looked_up` are embeddings of each layer's own.
    """

    embedding: int
    head: int
    tied: bool
    dense: int
    expert: int = 0
    experts: int = 0
    experts_per_token: int = 0
    moe_layers: int = 0
    looked_up: int = 0

    @property
    def total(self) -> int:
        """All of them, a tied embedding once."""
        head = 0 if self.tied else self.head
        dense = self.embedding + self.looked_up + head + self.dense
        return dense + self.moe_layers * self.experts * self.expert

    @property
    def active(self) -> int:
        """What is read for one token."""
        return self.dense + self.head + self.moe_layers * self.experts_per_token * self.expert


@dataclass(frozen=True, slots=True)
class Quantization:
    """How weights are stored: bytes a weight in experts and in other layers.

    Embedding and output layer stay in 16 bit. `kv_cache_dtype` is what the checkpoint itself asks for, and
    `cache_scales` tells whether vLLM looks in it for the scales of an fp8 cache.
    """

    method: str
    expert_bytes: float
    dense_bytes: float
    kv_cache_dtype: str = "auto"
    cache_scales: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """All that the planner knows of a model from its config.json.

    `hybrid` is vLLM's word for attention and states in one model: their pages are aligned, and those of
    attention alone by the state `aligned`. `attention_free` models have no prefix caching. `max_model_len`
    is the longest request, `unasked_model_len` what vLLM takes where nobody says. `draft_layers` are those
    of its own multi-token-prediction head. `known` tells whether this kind of model was compared
    with vLLM's own functions. `widest` is the most activations that one token has between two matrices.
    `vision_parameters` are the weights that see images, None where they cannot be counted.
    """

    model_type: str
    layers: tuple[Layer, ...]
    dtype_bytes: int
    max_model_len: int
    unasked_model_len: int
    hidden: int
    vocabulary: int
    parameters: Parameters
    quantization: Quantization
    model_attention: Attention | Latent | None
    draft_layers: tuple[Attention | Latent, ...] = ()
    vision: bool = False
    vision_parameters: int | None = None
    query_heads: int = 0
    known: bool = True
    widest: int = 0
    aligned: State | None = None
    attention_free: bool = False

    @property
    def states(self) -> tuple[State, ...]:
        """Its layers with a state."""
        return tuple(layer for layer in self.layers if isinstance(layer, State))

    @property
    def hybrid(self) -> bool:
        """Whether it has both kinds of layers."""
        return 0 < len(self.states) < len(self.layers)

    @property
    def only_states(self) -> bool:
        """Whether no layer keeps keys and values."""
        return len(self.states) == len(self.layers)

    @property
    def aligning(self) -> tuple[State, ...]:
        """The states by which the blocks of its attention are aligned."""
        if self.hybrid:
            return self.states
        return (self.aligned,) if self.aligned else ()

    @property
    def latent(self) -> bool:
        """Whether its attention is multi-head latent attention."""
        return any(isinstance(layer, Latent) for layer in self.layers)
