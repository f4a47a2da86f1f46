"""The prefix cache: what share of prompts is found there, and why it may be nearly none."""

from collections.abc import Iterator

from gateway.doctor.evidence import Configuration, Engine, Scrape
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import Finding, Unseen, seen

FEW_TOKENS = 5_000
LITTLE = 0.05
# Tokens; attention alone has blocks of 16 to 128. Hybrids with linear attention align theirs to a state: 528,
# 784, 1056, and more.
USUAL_BLOCK = 128
MANY_KEYS = 3
INFO = "vllm:cache_config_info"


def prefix(
    engine: Engine, configuration: Configuration | Unseen, gateway: Scrape | Unseen
) -> Iterator[Finding]:
    """Whether prompts that begin alike are found in the cache; where they are not, the likeliest reason."""
    check, last = "prefix-cache", seen(engine.scrape).last
    asked, hit = last.sum("vllm:prefix_cache_queries_total"), last.sum("vllm:prefix_cache_hits_total")
    if last.info(INFO, "enable_prefix_caching") == "False":
        title = "Prefix caching is off: what prompts begin with is read again each time"
        yield Finding(check, "hint", title, 'enable_prefix_caching="False"', "enable-prefix-caching: true")
    elif asked < FEW_TOKENS:
        yield Finding(
            check, "ok", "Too few prompts to judge the prefix cache", f"{asked:.0f} tokens looked up"
        )
    elif hit >= LITTLE * asked:
        yield Finding(
            check, "ok", "The prefix cache works", f"{hit / asked:.0%} of {asked:.0f} prompt tokens"
        )
    elif 0 < _prompt(last) <= granularity(last) <= USUAL_BLOCK:
        told = f"block {granularity(last)} tokens, prompts {_prompt(last):.0f} on average"
        yield Finding(check, "ok", "Prompts are too short for the prefix cache, and quickly read", told)
    else:
        title, evidence, mend = _reason(last, configuration, gateway)
        share = f"{hit / asked:.1%} of {asked:.0f} prompt tokens"
        yield Finding(check, "hint", title, f"{share}; {evidence}", mend)


def _reason(
    last: Exposition, configuration: Configuration | Unseen, gateway: Scrape | Unseen
) -> tuple[str, str, str]:
    step, prompt = granularity(last), _prompt(last)
    if step > USUAL_BLOCK and prompt < 2 * step:
        return (
            f"Nothing is found in the prefix cache: hits end at multiples of {step} tokens",
            f"block {step} tokens, prompts {prompt:.0f} on average",
            _finer(last, step),
        )
    keys = 0 if isinstance(gateway, Unseen) else len(gateway.last.by("gateway_key_requests_total", "key"))
    if _isolated(configuration) and keys >= MANY_KEYS:
        return (
            "Nothing is found in the prefix cache: each key has entries of its own",
            f'cache_isolation = "key", {keys} keys',
            "gateway keys update ID --cache-group team for those that may share (or "
            'cache_isolation = "none")',
        )
    return (
        "Nothing is found in the prefix cache: prompts differ from their first words on",
        f"block {step} tokens, prompts {prompt:.0f} on average",
        "put what changes (date, user, documents) behind what stays (instructions, tools), in every prompt",
    )


def granularity(last: Exposition) -> int:
    """The tokens at whose multiples a hit can end; 0 where the engine does not say.

    `cache_hit_alignment_tokens` where it is told, else the block size: vLLM's config/cache.py.
    """
    for label in ("cache_hit_alignment_tokens", "block_size"):
        told = last.info(INFO, label)
        if told.isdigit():
            return int(told)
    return 0


def _prompt(last: Exposition) -> float:
    return last.mean("vllm:request_prompt_tokens") or 0.0


def _finer(last: Exposition, step: int) -> str:
    chosen = last.info(INFO, "user_specified_block_size") == "True"
    if chosen and last.info(INFO, "mamba_block_size") in {"", "None"}:
        # With one kind of attention vLLM refuses any other unit than the block: v1/core/kv_cache_utils.py.
        return "leave block-size out of the profile: vLLM takes a small one by itself"
    # v1/core/single_type_kv_cache_manager.py, _cache_partial_tail_block: a prompt's end alone is kept finer.
    return (
        f"prefix-match-unit: {_unit(step)} in the profile helps prompts that continue earlier ones, as turns "
        f"of a chat; instructions that others share are found from {step} tokens on alone"
    )


def _unit(step: int) -> int:
    # Every group's block must be a multiple of it.
    return next((unit for unit in (64, 48, 32, 16) if step % unit == 0), 16)


def _isolated(configuration: Configuration | Unseen) -> bool:
    if isinstance(configuration, Unseen) or configuration.settings is None:
        return True
    models = configuration.settings.models
    return not models or any(model.cache_isolation == "key" for model in models)
