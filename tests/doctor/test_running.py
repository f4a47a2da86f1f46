"""What counters tell of an engine at work: concurrency, cache, hangs, latency, preemptions."""

from pathlib import Path

import pytest

from gateway.doctor.evidence import Container, Engine, Scrape, Watched
from gateway.doctor.exposition import Exposition, parsed
from gateway.doctor.finding import NOT_ASKED, NotLookedError, Unseen
from gateway.doctor.profile import Profile
from gateway.doctor.running import cache, concurrency, latency
from gateway.doctor.running import engine as engines
from tests.doctor.evidence import (
    RECORDED,
    VLLM,
    configuration,
    engine,
    only,
    profile,
    scrape,
    severities,
)

STEPS, DONE = "vllm:iteration_tokens_total_count", 'vllm:request_success_total{finished_reason="stop"}'
TOKENS, RUNNING = "vllm:generation_tokens_total", "vllm:num_requests_running"
WAITING, CACHE = "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"
DEVICE = Watched("http://prometheus", (), most_running=1, most_waiting=0, fullest_cache=0.1)


def test_recorded_counters_are_read() -> None:
    """A real engine's exposition: five requests at once on average, half of the prompts from the cache."""
    recorded = parsed(VLLM.read_text())
    found = Scrape(recorded, recorded, 5.0)
    # 113 steps are too few to tell; the average itself is right.
    assert concurrency.batch(found) is None
    assert recorded.sum("vllm:prefix_cache_hits_total") == 4608
    assert cache.granularity(recorded) == 128
    assert recorded.info("vllm:cache_config_info", "num_gpu_blocks") == "16384"


def test_recorded_concurrency() -> None:
    """A real engine that answered fifteen calls one after the other, then eighty by eight callers."""
    found = recorded("vllm-two-callers.txt")
    assert isinstance(found.scrape, Scrape)
    assert concurrency.batch(found.scrape) == pytest.approx(1.54, abs=0.01)
    assert severities(concurrency.alone(found, NOT_ASKED, NOT_ASKED)) == ["ok"]
    assert severities(latency.first_token(found, NOT_ASKED)) == ["ok"]


def test_something_else_is_no_exposition() -> None:
    """It is refused, and not taken for an engine without counters."""
    with pytest.raises(ValueError, match="not found"):
        parsed("<html>not found</html>")


@pytest.mark.parametrize(
    ("tokens", "severity", "watched"),
    [(1000, "hint", NOT_ASKED), (1000, "hint", DEVICE), (4000, "ok", NOT_ASKED), (1060, "ok", NOT_ASKED)],
)
def test_concurrency_that_never_exceeds_one(tokens: int, severity: str, watched: Watched | Unseen) -> None:
    """One token a step over many requests: the caller awaits each."""
    found = concurrency.alone(engine({STEPS: 1000, DONE: 50, TOKENS: tokens}), NOT_ASKED, watched)
    finding = only(found)
    assert finding.severity == severity
    assert ("your client awaits each call" in finding.title) == (severity == "hint")
    assert ("asyncio.gather" in finding.mend) == (severity == "hint")


def test_concurrency_of_one_right_now_is_a_warning() -> None:
    """While it works without a pause, somebody waits."""
    before, now = {STEPS: 900, DONE: 50, TOKENS: 900}, {STEPS: 1000, DONE: 50, TOKENS: 1000, RUNNING: 1}
    assert severities(concurrency.alone(engine(now, before), NOT_ASKED, NOT_ASKED)) == ["warning"]


def test_concurrency_of_one_that_a_limit_makes() -> None:
    """Where max_parallel refused more, the client is not to blame."""
    limited = scrape({'gateway_limited_total{key="abc",limit="max_parallel"}': 7})
    finding = only(concurrency.alone(engine({STEPS: 1000, DONE: 50, TOKENS: 1000}), limited, NOT_ASKED))
    assert "--max-parallel" in finding.mend


def test_peaks_of_a_day_overrule_the_average() -> None:
    """An average of one may have had its busy hour."""
    busy = Watched("http://prometheus", (), most_running=9, most_waiting=0, fullest_cache=0.1)
    found = concurrency.alone(engine({STEPS: 1000, DONE: 50, TOKENS: 1000}), NOT_ASKED, busy)
    assert severities(found) == ["ok"]


def test_speculative_tokens_are_no_concurrency() -> None:
    """Three tokens a step of one request, two of them guessed and accepted."""
    counters = {STEPS: 1000, DONE: 50, TOKENS: 3000, "vllm:spec_decode_num_accepted_tokens_total": 2000}
    assert concurrency.batch(scrape(counters)) == 1.0


def test_few_requests_are_not_judged() -> None:
    """Neither way."""
    assert severities(concurrency.alone(engine({STEPS: 100, DONE: 50}), NOT_ASKED, NOT_ASKED)) == ["ok"]


@pytest.mark.parametrize(
    ("count", "before", "severity"), [(0, 0, "ok"), (2, 2, "ok"), (50, 50, "warning"), (3, 1, "warning")]
)
def test_preemptions(count: int, before: int, severity: str) -> None:
    """More than one in a hundred requests, or any right now."""
    name = "vllm:num_preemptions_total"
    found = engine({name: count, DONE: 1000}, {name: before, DONE: 1000})
    finding = only(concurrency.preemptions(found, profile(max_num_seqs=64)))
    assert finding.severity == severity
    assert ("max_inflight = 48" in finding.mend) == (severity == "warning")


@pytest.mark.parametrize(
    ("made", "seconds", "cache_moved", "severity"),
    [
        (0, 60.0, False, "error"),
        (0, 5.0, False, "warning"),
        (0, 1.0, False, "warning"),
        (9, 60.0, False, "ok"),
        (0, 60.0, True, "ok"),
    ],
)
def test_hung(made: int, seconds: float, cache_moved: bool, severity: str) -> None:
    """Requests run, no token, no movement of the cache; a short look only suspects."""
    first = {RUNNING: 3, TOKENS: 100, CACHE: 0.4}
    last = {RUNNING: 3, TOKENS: 100 + made, CACHE: 0.5 if cache_moved else 0.4}
    finding = only(engines.hung(engine(last, first, seconds)))
    assert finding.severity == severity
    assert ("restart vllm" in finding.mend) == (severity == "error")
    assert ("--seconds 60" in finding.mend) == (severity == "warning")


def test_hung_is_not_judged_at_once() -> None:
    """Two reads without a pause would show every busy engine as hung; an idle one is well all the same."""
    with pytest.raises(NotLookedError, match="0 s apart"):
        list(engines.hung(engine({RUNNING: 3, TOKENS: 100, CACHE: 0.4}, seconds=0.0)))
    assert severities(engines.hung(engine({RUNNING: 0}, seconds=0.0))) == ["ok"]


def test_idle_is_not_hung() -> None:
    """Nothing runs, nothing comes."""
    assert severities(engines.hung(engine({RUNNING: 0, TOKENS: 5, CACHE: 0.0}, seconds=60.0))) == ["ok"]


def recorded(name: str) -> Engine:
    """An engine whose counters are a file."""
    exposed: Exposition = parsed((RECORDED / name).read_text())
    return Engine("http://vllm:8000", ("qwen",), Scrape(exposed, exposed, 5.0))


def test_prefix_cache_of_a_hybrid() -> None:
    """Prompts shorter than two blocks of 1,056 tokens are not found: a unit that divides it is advised."""
    finding = only(cache.prefix(recorded("vllm-hybrid.txt"), NOT_ASKED, NOT_ASKED))
    assert (finding.severity, "multiples of 1056 tokens" in finding.title) == ("hint", True)
    assert "prefix-match-unit: 48" in finding.mend
    assert "prompts 702 on average" in finding.evidence


def asked(block: int, prompt: float, **labels: str) -> Engine:
    """An engine that was asked 150 prompts of that length, and found none in its cache."""
    told = {"block_size": str(block), "enable_prefix_caching": "True", **labels}
    info = ",".join(f'{name}="{value}"' for name, value in told.items())
    counters = {
        f"vllm:cache_config_info{{{info}}}": 1,
        QUERIES: 150 * prompt,
        HITS: 0,
        "vllm:request_prompt_tokens_sum": 150 * prompt,
        "vllm:request_prompt_tokens_count": 150,
    }
    return engine(counters)


@pytest.mark.parametrize(("block", "unit"), [(784, 16), (544, 32), (528, 48), (1056, 48)])
def test_prefix_cache_of_blocks_that_prompts_do_not_fill(block: int, unit: int) -> None:
    """It is the block, whatever keys share: prompts of two blocks and more are judged by what they are."""
    short = only(cache.prefix(asked(block, 600), NOT_ASKED, scrape(KEYS)))
    assert f"multiples of {block} tokens" in short.title
    assert f"prefix-match-unit: {unit} " in short.mend
    long = only(cache.prefix(asked(block, 2 * block), NOT_ASKED, NOT_ASKED))
    assert "put what changes" in long.mend


def test_prefix_cache_of_a_block_that_was_chosen() -> None:
    """vLLM refuses another unit than the block where all of attention is of one kind."""
    chosen = asked(256, 300, user_specified_block_size="True", mamba_block_size="None")
    mend = only(cache.prefix(chosen, NOT_ASKED, NOT_ASKED)).mend
    assert "leave block-size out" in mend
    assert "prefix-match-unit" not in mend


def test_prefix_cache_of_prompts_within_a_block() -> None:
    """Nothing is there to find, and nothing to mend."""
    assert severities(cache.prefix(asked(128, 90), NOT_ASKED, scrape(KEYS))) == ["ok"]
    assert severities(cache.prefix(asked(128, 200), NOT_ASKED, scrape(KEYS))) == ["hint"]


QUERIES, HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
SMALL = 'vllm:cache_config_info{block_size="16",enable_prefix_caching="True"}'
OFF = 'vllm:cache_config_info{block_size="16",enable_prefix_caching="False"}'
KEYS = {f'gateway_key_requests_total{{key="k{number}",status_class="2xx"}}': 9.0 for number in range(4)}
SHARED = '[[models]]\nid = "q"\nengines = ["http://e:1"]\ncache_isolation = "none"\n'


def test_prefix_cache_of_isolated_keys() -> None:
    """Several keys with entries of their own: a group shares them."""
    finding = only(cache.prefix(engine({QUERIES: 9000, HITS: 10, SMALL: 1}), NOT_ASKED, scrape(KEYS)))
    assert "--cache-group" in finding.mend


def test_prefix_cache_of_prompts_that_differ(tmp_path: Path) -> None:
    """One key, or no isolation: then it is the prompts."""
    found = engine({QUERIES: 9000, HITS: 10, SMALL: 1})
    assert "put what changes" in only(cache.prefix(found, NOT_ASKED, NOT_ASKED)).mend
    shared = configuration(tmp_path, SHARED)
    assert "put what changes" in only(cache.prefix(found, shared, scrape(KEYS))).mend


@pytest.mark.parametrize(
    ("counters", "severity"),
    [
        ({QUERIES: 9000, HITS: 4000, SMALL: 1}, "ok"),
        ({QUERIES: 900, HITS: 0, SMALL: 1}, "ok"),
        ({QUERIES: 0, HITS: 0, OFF: 1}, "hint"),
    ],
)
def test_prefix_cache(counters: dict[str, float], severity: str) -> None:
    """One that works, one that had nothing to do, one that is off."""
    assert severities(cache.prefix(engine(counters), NOT_ASKED, NOT_ASKED)) == [severity]


def waits(ttft: float, queue: float, prefill: float, count: int = 100) -> Engine:
    """An engine whose requests waited so long on average."""
    means = {"time_to_first_token": ttft, "request_queue_time": queue, "request_prefill_time": prefill}
    counters = {f"vllm:{name}_seconds_sum": mean * count for name, mean in means.items()}
    return engine(counters | {f"vllm:{name}_seconds_count": float(count) for name in means})


@pytest.mark.parametrize(
    ("found", "severity", "mend"),
    [
        (waits(8.0, 6.0, 1.5), "warning", "max-num-seqs: 128"),
        (waits(8.0, 0.5, 7.0), "hint", "max-num-batched-tokens: 4096"),
        (waits(8.0, 2.0, 2.0), "ok", ""),
        (waits(0.3, 0.2, 0.1), "ok", ""),
        (waits(8.0, 6.0, 1.5, count=3), "ok", ""),
    ],
)
def test_first_token(found: Engine, severity: str, mend: str) -> None:
    """Late by the queue, late by the prompt, or neither."""
    flags: Profile = profile(max_num_seqs=64, max_num_batched_tokens=2048)
    finding = only(latency.first_token(found, flags))
    assert finding.severity == severity
    assert mend in finding.mend


def test_containers() -> None:
    """Ended by the kernel, ended by itself, started over and over."""
    found = engines.restarts(
        (
            Container("vllm", "exited", 137, out_of_memory=True),
            Container("gateway", "exited", 1),
            Container("caddy", "running", restarts=5),
            Container("grafana", "running"),
        )
    )
    assert severities(found) == ["error", "error", "warning"]
    assert severities(engines.restarts((Container("grafana", "running"),))) == ["ok"]


def test_engine_that_does_not_answer() -> None:
    """An error only where it is expected to run."""
    gone = Engine("http://vllm:8000", Unseen("connection refused"), NOT_ASKED)
    assert severities(engines.answers(gone, expected=True)) == ["error"]
    with pytest.raises(NotLookedError):
        list(engines.answers(gone, expected=False))
    assert severities(engines.answers(engine({}), expected=True)) == ["ok"]


def test_models_that_the_engine_lacks(tmp_path: Path) -> None:
    """Only of its own engine, by the name that it is asked for."""
    text = '[[models]]\nid = "{}"\nengines = ["http://vllm:8000"]\n'
    right, wrong = (configuration(tmp_path, text.format(name)) for name in ("qwen", "qwen3"))
    assert severities(engines.names(engine({}), right)) == ["ok"]
    finding = only(engines.names(engine({}), wrong))
    assert (finding.severity, 'engine_model = "qwen"' in finding.mend) == ("error", True)
    elsewhere = configuration(tmp_path, text.format("qwen3").replace("vllm:8000", "other:8000"))
    assert severities(engines.names(engine({}), elsewhere)) == ["ok"]
