"""How many requests run at once, by the engine's own steps: one step makes one token for each that runs."""

from collections.abc import Iterator

from gateway.doctor.before import cards
from gateway.doctor.before.profile import small_cache
from gateway.doctor.evidence import Compose, Engine, Profile, Scrape, Watched
from gateway.doctor.finding import NOT_ASKED, Finding, Severity, Unseen, seen
from gateway.doctor.machine import Machine

FEW_STEPS, FEW_REQUESTS = 200, 10
ALONE = 1.05  # tokens a step
FULL, HALF_EMPTY = 0.9, 0.5


def batch(scrape: Scrape) -> float | None:
    """Tokens made in a step, on average: requests that ran at once. None after too few steps to tell.

    vLLM counts a step in `iteration_tokens_total` when it brought output (v1/engine/async_llm.py). By
    speculative decoding one request gets several tokens in a step: the accepted ones are taken off.
    """
    last = scrape.last
    steps, requests = last.sum("vllm:iteration_tokens_total_count"), last.sum("vllm:request_success_total")
    if steps < FEW_STEPS or requests < FEW_REQUESTS:
        return None
    tokens = last.sum("vllm:generation_tokens_total")
    return (tokens - last.sum("vllm:spec_decode_num_accepted_tokens_total")) / steps


def alone(engine: Engine, gateway: Scrape | Unseen, watched: Watched | Unseen) -> Iterator[Finding]:
    """Whether there was never more than one request at a time, though callers had many."""
    check, scrape = "concurrency", seen(engine.scrape)
    average = batch(scrape)
    most = None if isinstance(watched, Unseen) else watched.most_running
    requests = scrape.last.sum("vllm:request_success_total")
    if average is None:
        yield Finding(check, "ok", "Too few requests to judge concurrency", f"{requests:.0f} since the start")
        return
    told = f"{average:.2f} requests a step on average over {requests:.0f} requests"
    told += f", {most:.0f} at most within a day" if most is not None else ""
    if average > ALONE or (most or 1) > 1:
        yield Finding(check, "ok", "Requests run at once", told)
        return
    limited = (
        0.0
        if isinstance(gateway, Unseen)
        else gateway.last.sum("gateway_limited_total", limit="max_parallel")
    )
    if limited:
        title = "One request at a time: keys have max_parallel 1, and more were refused"
        mend = "gateway keys list; gateway keys update ID --max-parallel 8"
        yield Finding(check, "warning", title, f"{told}; {limited:.0f} refused by max_parallel", mend)
    else:
        title = "One request at a time, always: your client awaits each call before it sends the next"
        mend = (
            "send several at once: asyncio.gather(*(client.chat.completions.create(…) for …)) "
            "with AsyncOpenAI, "
            "or a pool of threads; a batch of 8 takes hardly longer than one"
        )
        yield Finding(check, _severity(scrape), title, told, mend)


def _severity(scrape: Scrape) -> Severity:
    """A warning where the engine works on requests right now without a pause: then someone waits."""
    working = scrape.last.sum("vllm:num_requests_running") or scrape.grown("vllm:generation_tokens_total")
    return "warning" if working else "hint"


def room(
    engine: Engine,
    profile: Profile | Unseen,
    watched: Watched | Unseen,
    machine: Machine | Unseen = NOT_ASKED,
    compose: Compose | Unseen = NOT_ASKED,
) -> Iterator[Finding]:
    """Whether `max-num-seqs` and the KV cache fit each other: either may be full while the other is not."""
    check, scrape, chosen = "batch-room", seen(engine.scrape), seen(profile)
    seqs = chosen.number("max-num-seqs")
    if seqs is None:
        seen(Unseen("max-num-seqs is not known", "gateway doctor --profile FILE"))
    ranks = cards.replicas(chosen)  # each runs max-num-seqs
    last, limit = scrape.last, int(seqs or 0) * ranks
    most = None if isinstance(watched, Unseen) else watched
    running = max(last.sum("vllm:num_requests_running"), (most.most_running or 0) if most else 0)
    waiting = max(last.sum("vllm:num_requests_waiting"), (most.most_waiting or 0) if most else 0)
    cache = max(last.highest("vllm:kv_cache_usage_perc"), (most.fullest_cache or 0) if most else 0)
    evidence = f"{running:.0f} of {limit} run, {waiting:.0f} wait, cache {cache:.0%} full"
    if waiting and cache >= FULL and running < limit:
        title = "The KV cache is full before max-num-seqs is reached"
        small = small_cache(chosen, machine, compose)
        mend = (
            f"max-num-seqs: {max(1, int(running) // ranks)} and {_inflight(max(1, int(running)))}, or more "
            f"cache: {f'kv-cache-dtype: {small}, ' if small else ''}a shorter max-model-len "
            f"(in {chosen.place})"
        )
        yield Finding(check, "hint", title, evidence, mend)
    elif waiting and running >= limit and cache < HALF_EMPTY:
        title = "Requests wait while the KV cache is half empty: max-num-seqs is the limit"
        mend = f"max-num-seqs: {limit // ranks * 2} (in {chosen.place}) and {_inflight(limit * 2)}"
        yield Finding(check, "warning", title, evidence, mend)
    else:
        yield Finding(check, "ok", "max-num-seqs and the KV cache fit each other", evidence)


def _inflight(calls: int) -> str:
    return f"max_inflight = {calls} for each engine of the model in gateway.toml"


def preemptions(engine: Engine, profile: Profile | Unseen) -> Iterator[Finding]:
    """Whether requests are thrown out of the cache and computed again."""
    check, scrape = "preemptions", seen(engine.scrape)
    count, requests = (
        scrape.last.sum("vllm:num_preemptions_total"),
        scrape.last.sum("vllm:request_success_total"),
    )
    now = scrape.grown("vllm:num_preemptions_total")
    evidence = f"{count:.0f} over {requests:.0f} requests, {now:.0f} of them in {scrape.seconds:.0f} s"
    if now or count > max(3.0, 0.01 * requests):
        seqs = None if isinstance(profile, Unseen) else profile.number("max-num-seqs")
        less, fewer = "a smaller max-num-seqs", "a smaller max_inflight in gateway.toml"
        if seqs and not isinstance(profile, Unseen):
            each = max(1, int(seqs * 3 / 4))
            less, fewer = f"max-num-seqs: {each}", _inflight(each * cards.replicas(profile))
        title = "Running requests are thrown out of the KV cache and computed again"
        mend = f"{less} and {fewer}, or a shorter max-model-len"
        yield Finding(check, "warning", title, evidence, mend)
    else:
        yield Finding(check, "ok", "Hardly any preemptions", evidence)
