"""How fast a model can be where memory is the limit, which it is while tokens are generated.

An upper bound: no kernel reads memory at its full rate, and large batches are limited by arithmetic too.
"""

from dataclasses import dataclass, replace

from gateway.planner.layers import Engine, state_bytes, token_bytes
from gateway.planner.shape import Attention, Shape, State
from gateway.planner.weights import Weights

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# The length of a request for estimates of many at once: a prompt with its answer.
REQUEST_TOKENS = 1500


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch of so many requests makes: tokens a second in all, and for each of them."""

    batch: int
    tokens_per_second: float
    each_tokens_per_second: float


def ceiling(bandwidth_bytes_per_second: float, active_bytes: float) -> float:
    """Tokens a second of a single stream: bandwidth over the bytes of weights that one token reads."""
    return bandwidth_bytes_per_second / active_bytes


def steps(
    bandwidth_bytes_per_second: float, shape: Shape, engine: Engine, weights: Weights
) -> tuple[Step, ...]:
    """The estimate for each size of batch, with the KV cache's traffic and that of all experts met."""
    ranks = engine.tensor_parallel_size
    traffic = request_bytes(shape, engine, min(REQUEST_TOKENS, engine.max_model_len))
    found = []
    for batch in BATCHES:
        met = experts_met(weights.experts, weights.experts_per_token, batch)
        read = (weights.fixed_bytes + met * weights.expert_bytes) / ranks + batch * traffic
        rate = bandwidth_bytes_per_second / read
        found.append(Step(batch, rate * batch, rate))
    return tuple(found)


def experts_met(experts: int, per_token: int, batch: int) -> float:
    """How many different experts a batch is sent to, if each token chooses evenly."""
    return experts * (1 - (1 - per_token / experts) ** batch) if experts else 0.0


def request_bytes(shape: Shape, engine: Engine, tokens: int) -> int:
    """What one step of one request of so many tokens reads of its cache on one of the cards.

    A state is read and written. Heads are divided among cards, down to one on each; MLA's vector is on all.
    """
    total = 0
    for layer in shape.layers:
        if isinstance(layer, State):
            total += 2 * state_bytes(layer, shape, engine)
        else:
            if isinstance(layer, Attention):
                layer = replace(layer, kv_heads=max(1, layer.kv_heads // engine.tensor_parallel_size))
            window = getattr(layer, "window", None) or getattr(layer, "chunk", None) or tokens
            total += min(window, tokens) * token_bytes(layer, shape, engine)
    return total
