"""Groups of layers that share block tables: `get_kv_cache_groups` of vLLM's `v1/core/kv_cache_utils.py`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.planner.layers import Engine, Page, ceil
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Latent, State


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one block table. `bytes_a_block` is what a block costs all of them."""

    kind: str
    layers: int
    block_tokens: int
    bytes_a_block: int
    pages: tuple[Page, ...]

    def blocks(self, tokens: int, engine: Engine) -> int:
        """The blocks that a request of so many tokens takes here."""
        return max(_blocks(page, tokens, engine) for page in self.pages)


def group(pages: Sequence[Page]) -> tuple[Group, ...]:
    """All groups; a block of the pool costs the largest of their `bytes_a_block`.

    Raises PlanProblem if vLLM would not be able to bring the pages to one size.
    """
    if _uniform(pages):
        return (_one(pages),)
    buckets = Counter(_unified(pages))
    fewest, most = min(buckets.values()), max(buckets.values())
    # Few layers more are padded rather than split (gpt-oss with a draft: 12 sliding, 13 full).
    size = most if most < fewest * 1.5 else fewest
    return tuple(
        Group(
            _kind(page),
            len(range(index, count, parts)),
            page.block_tokens,
            size * page.bytes_a_block,
            (page,),
        )
        for page, count in buckets.items()
        for parts in [ceil(count, size)]
        for index in range(parts)
    )


def _uniform(pages: Sequence[Page]) -> bool:
    """`is_kv_cache_spec_uniform` and `UniformTypeKVCacheSpecs.is_uniform_type`: one group for all layers."""
    if len({page.block_tokens for page in pages}) > 1:
        return False
    first = pages[0].layer
    if isinstance(first, State):
        return all(
            isinstance(page.layer, State) and page.bytes_a_block == pages[0].bytes_a_block for page in pages
        )
    if isinstance(first, Attention) and (first.window or first.chunk):
        reach = (first.window, first.chunk)
        return all(
            isinstance(page.layer, Attention) and (page.layer.window, page.layer.chunk) == reach
            for page in pages
        )
    return all(_full(page) for page in pages)


def _full(page: Page) -> bool:
    layer = page.layer
    return isinstance(layer, Latent) or (isinstance(layer, Attention) and not (layer.window or layer.chunk))


def _one(pages: Sequence[Page]) -> Group:
    kinds = tuple(dict.fromkeys(pages))
    return Group(
        _kind(pages[0]), len(pages), pages[0].block_tokens, sum(page.bytes_a_block for page in pages), kinds
    )


def _unified(pages: Sequence[Page]) -> list[Page]:
    """`unify_kv_cache_spec_page_size`: larger blocks where that works out, padding where it does not."""
    largest = max(page.bytes_a_block for page in pages)
    found = []
    for page in pages:
        if page.bytes_a_block == largest:
            found.append(page)
        elif isinstance(page.layer, State) or largest % page.bytes_a_block:
            if isinstance(page.layer, Latent):
                raise PlanProblem("vLLM cannot bring the caches of this model's layers to one page size.")
            found.append(replace(page, bytes_a_block=largest))
        else:
            ratio = largest // page.bytes_a_block
            found.append(replace(page, block_tokens=page.block_tokens * ratio, bytes_a_block=largest))
    return found


def _kind(page: Page) -> str:
    layer = page.layer
    if isinstance(layer, State):
        return layer.kind
    if isinstance(layer, Latent):
        return "latent"
    if layer.chunk:
        return f"chunks of {layer.chunk:,}"
    return f"sliding {layer.window:,}" if layer.window else "full"


def _blocks(page: Page, tokens: int, engine: Engine) -> int:
    """`max_memory_usage_bytes` and `max_admission_blocks_per_request` of each kind of cache."""
    layer = page.layer
    if isinstance(layer, State):
        if not engine.prefix_caching:
            return 1 + engine.speculative_tokens
        # Mamba2 writes a checkpoint within a prefill, into a block of its own.
        return 2 + engine.speculative_tokens + (layer.kind == "mamba2")
    if isinstance(layer, Attention) and layer.window:
        kept = layer.window - 1 + engine.in_flight_tokens
        return ceil(min(kept, tokens), page.block_tokens) + 1
    if isinstance(layer, Attention) and layer.chunk:
        return ceil(min(layer.chunk + engine.in_flight_tokens, tokens), page.block_tokens)
    return ceil(tokens, page.block_tokens)
