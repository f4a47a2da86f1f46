"""`max-num-seqs` against the KV cache, by what counters tell: one may be full while the other is not."""

from typing import Any

import pytest

from gateway.doctor.evidence import Watched
from gateway.doctor.finding import NOT_ASKED, NotLookedError
from gateway.doctor.machine import Gpu
from gateway.doctor.running import concurrency
from tests.doctor.evidence import RTX_3090, RTX_5090, engine, machine, only, profile, severities

RUNNING, WAITING, CACHE = "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"


@pytest.mark.parametrize(
    ("running", "waiting", "full", "severity"),
    [
        (20, 5, 0.97, "hint"),
        (64, 5, 0.3, "warning"),
        (64, 5, 0.95, "ok"),
        (20, 5, 0.3, "ok"),
        (20, 0, 0.97, "ok"),
        (3, 0, 0.1, "ok"),
    ],
)
def test_room(running: int, waiting: int, full: float, severity: str) -> None:
    """The cache full before max-num-seqs is, and the other way round."""
    busy = engine({RUNNING: running, WAITING: waiting, CACHE: full})
    finding = only(concurrency.room(busy, profile(max_num_seqs=64), NOT_ASKED))
    assert finding.severity == severity
    assert ("max-num-seqs: " in finding.mend) == (severity != "ok")


def test_room_over_a_day() -> None:
    """What Prometheus has seen counts, when now is quiet; without a known limit nothing is judged."""
    busy = Watched("http://prometheus", (), most_running=64, most_waiting=40, fullest_cache=0.2)
    assert severities(concurrency.room(engine({RUNNING: 0}), profile(max_num_seqs=64), busy)) == ["warning"]
    with pytest.raises(NotLookedError):
        list(concurrency.room(engine({RUNNING: 0}), profile(), busy))


@pytest.mark.parametrize(
    ("flags", "card", "advised"),
    [
        ({}, RTX_5090, "kv-cache-dtype: fp8,"),
        ({}, RTX_3090, "kv-cache-dtype: int8_per_token_head,"),
        ({"attention_backend": "FLASHINFER"}, RTX_3090, "kv-cache-dtype: fp8,"),
        ({"kv_cache_dtype": "fp8"}, RTX_5090, "more cache: a shorter"),
    ],
)
def test_more_cache_by_a_type_that_the_card_has(flags: dict[str, Any], card: Gpu, advised: str) -> None:
    """What is advised is what the next look accepts."""
    full = engine({RUNNING: 20, WAITING: 5, CACHE: 0.97})
    found = concurrency.room(full, profile(max_num_seqs=64, **flags), NOT_ASKED, machine(gpus=(card,)))
    assert advised in only(found).mend


def test_room_of_ranks() -> None:
    """max-num-seqs is that of one rank, and the counters are those of all."""
    two = profile(max_num_seqs=16, data_parallel_size=2)
    part, all_busy = (
        engine({f'{RUNNING}{{engine="0"}}': 16, f'{RUNNING}{{engine="1"}}': other, WAITING: 2, CACHE: 0.3})
        for other in (4, 16)
    )
    assert severities(concurrency.room(part, two, NOT_ASKED)) == ["ok"]
    mend = only(concurrency.room(all_busy, two, NOT_ASKED)).mend
    assert "max-num-seqs: 32 " in mend
    assert "max_inflight = 64 " in mend
