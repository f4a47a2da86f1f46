"""What callers wait for before the first token: the engine's queue, or the reading of their prompts."""

from collections.abc import Iterator

from gateway.doctor.evidence import Engine
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import Finding, Unseen, seen
from gateway.doctor.profile import Profile

SLOW_SECONDS = 1.0
MOST = 0.5
FEW_REQUESTS = 10
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"
TTFT = "vllm:time_to_first_token_seconds"


def first_token(engine: Engine, profile: Profile | Unseen) -> Iterator[Finding]:
    """Whether the time to the first token is long, and which part of it is the longest.

    All three are means since the engine's start (v1/metrics/loggers.py); queue and prefill are parts of TTFT.
    """
    check, last = "first-token", seen(engine.scrape).last
    ttft, requests = last.mean(TTFT), last.sum(f"{TTFT}_count")
    if ttft is None or requests < FEW_REQUESTS:
        yield Finding(
            check, "ok", "Too few requests to judge the first token", f"{requests:.0f} since the start"
        )
        return
    queue, prefill = last.mean(QUEUE) or 0.0, last.mean(PREFILL) or 0.0
    evidence = f"first token after {ttft:.2f} s: {queue:.2f} s in the queue, {prefill:.2f} s reading"
    if ttft >= SLOW_SECONDS and queue >= MOST * ttft:
        title = "The first token is late because requests queue in the engine"
        mend = _for_queue(profile)
        yield Finding(check, "warning", title, evidence, mend)
    elif ttft >= SLOW_SECONDS and prefill >= MOST * ttft:
        title = "The first token is late because long prompts are read"
        yield Finding(check, "hint", title, f"{evidence}; {_prompts(last)}", _for_prefill(last, profile))
    else:
        yield Finding(check, "ok", "The first token comes soon enough", evidence)


def _for_queue(profile: Profile | Unseen) -> str:
    seqs = None if isinstance(profile, Unseen) else profile.number("max-num-seqs")
    more = f"max-num-seqs: {int(seqs) * 2}" if seqs else "a larger max-num-seqs"
    return (
        f"{more} if the KV cache has room, else fewer at once: max_inflight, limits of keys, or a "
        "second engine"
    )


def _for_prefill(last: Exposition, profile: Profile | Unseen) -> str:
    step = None if isinstance(profile, Unseen) else profile.number("max-num-batched-tokens")
    asked, hit = last.sum("vllm:prefix_cache_queries_total"), last.sum("vllm:prefix_cache_hits_total")
    first = "begin prompts alike, so that the prefix cache helps; " if asked and hit < MOST * asked else ""
    more = f"max-num-batched-tokens: {int(step) * 2}" if step else "a larger max-num-batched-tokens"
    return f"{first}{more} if memory allows"


def _prompts(last: Exposition) -> str:
    return f"prompts have {last.mean('vllm:request_prompt_tokens') or 0:.0f} tokens on average"
