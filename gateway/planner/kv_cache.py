"""The KV cache as vLLM will log it: blocks, tokens, requests at once, and whether it starts at all."""

from dataclasses import dataclass

from gateway.planner.groups import Group, group
from gateway.planner.layers import Engine, pages
from gateway.planner.shape import Shape


@dataclass(frozen=True, slots=True)
class KVCache:
    """What `bytes` of memory hold. `tokens` is the number in vLLM's log: concurrency x `max_model_len`.

    It is no capacity: the same memory says another number at another length. `longest` is the largest
    `max_model_len` that vLLM would start with, up to the model's own: its `--max-model-len auto`; 0 if not
    even one token fits.
    """

    engine: Engine
    groups: tuple[Group, ...]
    bytes: int
    bytes_a_block: int
    num_blocks: int
    blocks_per_request: int
    longest: int

    @property
    def block_size(self) -> int:
        """The smallest of the groups' blocks, as `vllm:cache_config_info` has it."""
        return min(one.block_tokens for one in self.groups)

    @property
    def max_concurrency(self) -> float:
        """Requests of full length at once: `get_max_concurrency_for_kv_cache_config`."""
        return self.num_blocks / self.blocks_per_request

    @property
    def tokens(self) -> int:
        """What vLLM's log and metric say."""
        return int(self.max_concurrency * self.engine.max_model_len)

    @property
    def starts(self) -> bool:
        """Whether one request of full length fits beside the block that vLLM keeps for itself."""
        return self.num_blocks > self.blocks_per_request

    def blocks(self, tokens: int) -> int:
        """The blocks that one request of so many tokens takes."""
        return sum(one.blocks(tokens, self.engine) for one in self.groups)

    def at_once(self, tokens: int) -> int:
        """How many requests of so many tokens fit."""
        return max(0, (self.num_blocks - 1) // self.blocks(min(tokens, self.engine.max_model_len)))


def compute(shape: Shape, engine: Engine, available_bytes: int) -> KVCache:
    """The cache that so many bytes of one GPU give: `get_kv_cache_config_from_groups` and its checks."""
    groups = group(pages(shape, engine))
    bytes_a_block = max(one.bytes_a_block for one in groups)
    blocks = max(0, available_bytes) // bytes_a_block
    return KVCache(
        engine=engine,
        groups=groups,
        bytes=available_bytes,
        bytes_a_block=bytes_a_block,
        num_blocks=blocks,
        blocks_per_request=_per_request(groups, engine, engine.max_model_len),
        longest=_longest(groups, engine, blocks - 1, max(engine.max_model_len, shape.max_model_len)),
    )


def _per_request(groups: tuple[Group, ...], engine: Engine, tokens: int) -> int:
    return sum(one.blocks(tokens, engine) for one in groups)


def _longest(groups: tuple[Group, ...], engine: Engine, blocks: int, most: int) -> int:
    """`_estimate_max_model_len_from_groups`: the same search."""
    low, high, found = 1, most, 0
    while low <= high:
        middle = (low + high) // 2
        if _per_request(groups, engine, middle) <= blocks:
            found, low = middle, middle + 1
        else:
            high = middle - 1
    return found
