"""A plan for people: tables in which each figure says what it rests on."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.planner import answer
from gateway.planner.kv_cache import KVCache
from gateway.planner.memory import Memory
from gateway.planner.plan import COMFORTABLE_TOKENS_PER_SECOND, Plan, Refused
from gateway.planner.speed import REQUEST_TOKENS
from gateway.planner.units import gb, gib, share

_TABLE = (
    "Weights as published or counted; ceiling, context and KV tokens are computed from an estimate of memory"
)


def render(plan: Plan) -> RenderableType:
    """Everything, the verdict first."""
    parts: list[RenderableType] = [_verdict(plan), _figures(plan)]
    if plan.steps:
        parts.append(_steps(plan))
    if plan.alternatives:
        parts.append(_alternatives(plan))
    parts.append(_flags(plan))
    parts += [Text(f"! {risk}") for risk in plan.risks]
    return Group(*parts)


def table(plans: Iterable[Plan | Refused]) -> Table:
    """One row for each model: what an operator wants to know first."""
    found = _table(
        _TABLE, "model", "weights", "active", "fits", "ceiling", "comfortable", "context", "KV tokens"
    )
    for column in found.columns:
        column.no_wrap = True
        if column.header not in ("model", "fits", "comfortable"):
            column.justify = "right"
    refused: dict[str, list[str]] = {}
    for plan in plans:
        count = plan.model.shape.parameters
        found.add_row(
            plan.model.name,
            gb(plan.model.weights.bytes),
            f"{count.active / 1e9:.1f}B of {count.total / 1e9:.1f}B",
            *(_cells(plan) if isinstance(plan, Plan) else ("refused", "-", "-", "-", "-")),
        )
        if isinstance(plan, Refused):
            refused.setdefault(plan.why, []).append(plan.model.name)
    if refused:
        why = "\n".join(f"{', '.join(models)}: {why}" for why, models in refused.items())
        found.caption, found.caption_justify = why, "left"
    return found


def _cells(plan: Plan) -> Sequence[str]:
    return (
        "yes" if plan.fits else "no",
        f"{plan.ceiling:,.0f} tok/s" if plan.ceiling else "-",
        _comfort(plan),
        f"{plan.cache.engine.max_model_len:,}" if plan.fits else "-",
        f"{plan.cache.tokens:,}" if plan.fits else "-",
    )


def _comfort(plan: Plan) -> str:
    if plan.fits and plan.comfortable is None:
        return "-"  # no bandwidth is known
    return "yes" if plan.fits and plan.comfortable else "no"


def _verdict(plan: Plan) -> Text:
    where = plan.hardware.title if plan.hardware else "the given KV cache"
    if not plan.fits:
        return Text(f"{plan.model.name} does not fit on {where}: {why_not(plan)}", style="bold red")
    said = f"{plan.model.name} fits on {where}"
    if plan.comfortable is not None:
        rule = f"weights under a third of memory, and over {COMFORTABLE_TOKENS_PER_SECOND:.0f} tokens/s"
        said += f", {'and is comfortable' if plan.comfortable else 'but is not comfortable'} ({rule})"
    return Text(f"{said}.", style="bold green")


def why_not(plan: Plan) -> str:
    """What keeps a plan that does not fit from fitting, and how far it is from it."""
    if plan.memory is not None and (given := _given(plan, plan.memory)) <= plan.memory.taken_bytes:
        return (
            f"its weights take {gib(plan.memory.weights_bytes)} of {gib(given)}, and nothing is left for the "
            "KV cache. Take a smaller checkpoint, or more memory."
        )
    if plan.too_long:
        return f"the longest --max-model-len by its config is {plan.model.shape.max_model_len:,}."
    if plan.cache.starts and plan.too_many_seqs:
        return f"max-num-seqs {plan.max_num_seqs} is more than its {plan.cache.num_blocks:,} blocks."
    if plan.cache.starts and plan.memory is not None:
        return f"{gib(plan.cache.bytes)} of KV cache are more than its memory has beside the weights."
    if plan.cache.longest:
        return f"the longest --max-model-len is {plan.cache.longest:,}."
    return "the KV cache does not hold one request."


def _given(plan: Plan, memory: Memory) -> int:
    """What a plan may take: beside a cache of a given size all memory, since that heeds no utilisation."""
    return memory.requested_bytes if plan.options.kv_cache_bytes is None else memory.total_bytes


def _figures(plan: Plan) -> Table:
    found = _table("", "figure", "value", "which is")
    rests = answer.basis(plan)
    for name, value, basis in (*_of_weights(plan, rests), *_of_memory(plan), *_of_cache(plan, rests)):
        found.add_row(name, value, basis)
    return found


def _of_weights(plan: Plan, rests: dict[str, str]) -> Iterable[Sequence[str]]:
    weights = plan.model.weights
    yield (
        "weights",
        f"{gib(weights.bytes)} ({gb(weights.bytes)})",
        f"{rests['weights.bytes']}: {weights.source}",
    )
    yield "read for one token", gb(weights.active_bytes), rests["weights.active_bytes"]
    if plan.ceiling:
        yield (
            "single-stream ceiling",
            f"{plan.ceiling:,.0f} tokens/s",
            f"{rests['speed.single_stream_tokens_per_second']}: bandwidth / bytes for one token",
        )
    elif plan.hardware is not None:
        yield "single-stream ceiling", "not known", "nobody told this card's bandwidth: --bandwidth does"


def _of_memory(plan: Plan) -> Iterable[Sequence[str]]:
    divided = plan.memory
    if divided is None:
        return
    given = round(divided.requested_bytes / divided.total_bytes, 6)  # bytes are whole
    yield (
        "memory for vLLM",
        f"{gib(divided.requested_bytes)} of {gib(divided.total_bytes)}",
        f"computed: x {share(given)}",
    )
    yield "activations, graphs, libraries", gib(
        divided.activation_bytes + divided.graphs_bytes + divided.libraries_bytes
    ), "estimated: vLLM measures it at start"  # fmt: skip


def _of_cache(plan: Plan, rests: dict[str, str]) -> Iterable[Sequence[str]]:
    cache, computed = plan.cache, rests["kv_cache"]
    yield "left for the KV cache", gib(cache.bytes), rests["kv_cache.bytes"]
    yield (
        "max-model-len",
        f"{cache.engine.max_model_len:,} tokens",
        "chosen" if not plan.options.max_model_len else "given",
    )
    yield "groups", _groups(cache), "computed"
    yield (
        "blocks",
        f"{cache.num_blocks:,} of {cache.block_size:,} tokens ({gib(cache.bytes_a_block)} each)",
        computed,
    )
    yield "blocks of a full request", f"{cache.blocks_per_request:,}", "computed"
    yield "full requests at once", f"{cache.max_concurrency:,.2f}x", f"{computed}: as vLLM logs it"
    yield "KV cache size", f"{cache.tokens:,} tokens", f"{computed}: as vLLM logs it"
    yield f"requests of {REQUEST_TOKENS:,} tokens at once", f"{cache.at_once(REQUEST_TOKENS):,}", computed
    yield (
        "max_inflight for the gateway",
        f"{plan.max_inflight:,}",
        f"the smaller of that and max-num-seqs {plan.max_num_seqs}",
    )


def _groups(cache: KVCache) -> str:
    said: dict[str, int] = {}
    for one in cache.groups:
        said[f"{one.layers} {one.kind}"] = said.get(f"{one.layers} {one.kind}", 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in said.items())


def _steps(plan: Plan) -> Table:
    title = f"Estimated: bandwidth alone, requests of {REQUEST_TOKENS:,} tokens, no kernel reaches it"
    found = _table(title, "at once", *(str(one.batch) for one in plan.steps))
    found.add_row("tokens/s in all", *(f"{one.tokens_per_second:,.0f}" for one in plan.steps))
    found.add_row("tokens/s each", *(f"{one.each_tokens_per_second:,.0f}" for one in plan.steps))
    return found


def _alternatives(plan: Plan) -> Table:
    computed = answer.basis(plan)["kv_cache"]
    found = _table(
        f"What a change would do ({computed})", "change", "block", "blocks", "a request", "at once", "tokens"
    )
    for name, cache in (("as planned", plan.cache), *((one.change, one.cache) for one in plan.alternatives)):
        found.add_row(
            name,
            f"{cache.block_size:,}",
            f"{cache.num_blocks:,}",
            f"{cache.blocks_per_request:,}",
            f"{cache.max_concurrency:,.1f}x" if cache.starts else "does not start",
            f"{cache.tokens:,}" if cache.starts else f"longest {cache.longest:,}",
        )
    return found


def _flags(plan: Plan) -> Table:
    found = _table("Flags of vllm serve", "flag", "value", "reason")
    found.columns[0].no_wrap = True
    for flag in plan.flags:
        value = str(flag.value).lower() if isinstance(flag.value, bool) else str(flag.value)
        found.add_row(f"--{flag.name}", value, " ".join(flag.reason.split()))
    return found


def _table(title: str, *columns: str) -> Table:
    found = Table(title=title or None, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for column in columns:
        found.add_column(column, overflow="fold")
    return found
