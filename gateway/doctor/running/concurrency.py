"""How many requests run at once, by the engine's own steps: one step makes one token for each that runs."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.doctor import kv_cache, spread
from gateway.doctor.evidence import Compose, Engine, Scrape, Watched
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import NOT_ASKED, Finding, NotLookedError, Severity, Unseen, seen
from gateway.doctor.machine import Machine
from gateway.doctor.profile import Profile

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


@dataclass(frozen=True)
class _Load:
    """The most that ran and waited, now or within a day, and how full the cache was; `limit` may run at once.

    Each of the engine's ranks runs `max-num-seqs`, and the counters are those of all.
    """

    limit: int
    ranks: int
    running: float
    waiting: float
    cache: float

    def __str__(self) -> str:
        return f"{self.running:.0f} of {self.limit} run, {self.waiting:.0f} wait, cache {self.cache:.0%} full"


def room(
    engine: Engine,
    profile: Profile | Unseen,
    watched: Watched | Unseen,
    machine: Machine | Unseen = NOT_ASKED,
    compose: Compose | Unseen = NOT_ASKED,
) -> Iterator[Finding]:
    """Whether `max-num-seqs` and the KV cache fit each other: either may be full while the other is not."""
    check, scrape, chosen = "batch-room", seen(engine.scrape), seen(profile)
    load = _load(scrape.last, chosen, watched)
    if load.waiting and load.cache >= FULL and load.running < load.limit:
        title = "The KV cache is full before max-num-seqs is reached"
        mend = _more_cache(load, chosen, kv_cache.half(chosen, machine, compose))
        yield Finding(check, "hint", title, str(load), mend)
    elif load.waiting and load.running >= load.limit and load.cache < HALF_EMPTY:
        title = "Requests wait while the KV cache is half empty: max-num-seqs is the limit"
        more = load.limit // load.ranks * 2
        mend = f"max-num-seqs: {more} (in {chosen.place}) and {_inflight(load.limit * 2)}"
        yield Finding(check, "warning", title, str(load), mend)
    else:
        yield Finding(check, "ok", "max-num-seqs and the KV cache fit each other", str(load))


def _load(last: Exposition, profile: Profile, watched: Watched | Unseen) -> _Load:
    """Raises NotLookedError where it is not known how many may run."""
    seqs = profile.number("max-num-seqs")
    if seqs is None:
        raise NotLookedError(Unseen("max-num-seqs is not known", "gateway doctor --profile FILE"))
    ranks = spread.replicas(profile)
    day = None if isinstance(watched, Unseen) else watched
    return _Load(
        limit=int(seqs) * ranks,
        ranks=ranks,
        running=max(last.sum("vllm:num_requests_running"), (day.most_running or 0) if day else 0),
        waiting=max(last.sum("vllm:num_requests_waiting"), (day.most_waiting or 0) if day else 0),
        cache=max(last.highest("vllm:kv_cache_usage_perc"), (day.fullest_cache or 0) if day else 0),
    )


def _more_cache(load: _Load, profile: Profile, small: str) -> str:
    fit = max(1, int(load.running))
    smaller = f"kv-cache-dtype: {small}, " if small else ""
    return (
        f"max-num-seqs: {max(1, fit // load.ranks)} and {_inflight(fit)}, or more "
        f"cache: {smaller}a shorter max-model-len (in {profile.place})"
    )


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
            less, fewer = f"max-num-seqs: {each}", _inflight(each * spread.replicas(profile))
        title = "Running requests are thrown out of the KV cache and computed again"
        mend = f"{less} and {fewer}, or a shorter max-model-len"
        yield Finding(check, "warning", title, evidence, mend)
    else:
        yield Finding(check, "ok", "Hardly any preemptions", evidence)
