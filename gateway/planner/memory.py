"""What of a card's memory is left for the KV cache: an estimate, since vLLM measures it at start.

`Worker.determine_available_memory` of vLLM: the share that was asked for, less weights, less the peak of a
batch of `max_num_batched_tokens` tokens, less CUDA graphs.
"""

import math
from dataclasses import dataclass

from gateway.planner.hardware import Hardware
from gateway.planner.shape import Shape
from gateway.planner.weights import Weights

# cuBLAS, NCCL, FlashInfer's workspace; and what graphs took on cards of 24 to 32 GB in published logs.
LIBRARIES_BYTES = 400_000_000
GRAPHS_BYTES = 400_000_000


@dataclass(frozen=True, slots=True)
class Memory:
    """How a card's memory is divided, in bytes. All but `total_bytes` and `requested_bytes` is estimated."""

    total_bytes: int
    requested_bytes: int
    weights_bytes: int
    activation_bytes: int
    graphs_bytes: int
    libraries_bytes: int

    @property
    def left_bytes(self) -> int:
        """What remains for the KV cache; negative if the weights do not fit."""
        return self.requested_bytes - self.taken_bytes

    @property
    def taken_bytes(self) -> int:
        """What all but the KV cache takes."""
        return self.weights_bytes + self.activation_bytes + self.graphs_bytes + self.libraries_bytes


def divide(
    hardware: Hardware, shape: Shape, weights: Weights, *, utilization: float, batched_tokens: int, seqs: int,
    ranks: int = 1,
) -> Memory:  # fmt: skip
    """The division at a utilisation, with weights spread over `ranks` cards."""
    return Memory(
        total_bytes=hardware.memory_bytes,
        requested_bytes=math.ceil(hardware.memory_bytes * utilization),
        weights_bytes=weights.bytes // ranks,
        activation_bytes=_activations(shape, batched_tokens, seqs) // ranks,
        graphs_bytes=0 if hardware.cpu else GRAPHS_BYTES,
        libraries_bytes=0 if hardware.cpu else LIBRARIES_BYTES,
    )


def _activations(shape: Shape, batched_tokens: int, seqs: int) -> int:
    """Of a whole batch: the residual stream some times over, the widest layer, and float32 logits twice."""
    per_token = (6 * shape.hidden + shape.widest) * shape.dtype_bytes
    return batched_tokens * per_token + min(seqs, batched_tokens) * shape.vocabulary * 4 * 2
