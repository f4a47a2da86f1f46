"""Memory of the GPU, swap, and who else holds the card."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.doctor.before import cards, memory
from gateway.doctor.evidence import Compose, Holder, Memory, Service
from gateway.doctor.finding import NOT_ASKED, NotLookedError, Unseen
from gateway.doctor.machine import Gpu
from tests.doctor.evidence import RTX_3090, SPARK, machine, only, profile, severities


def compose(given: tuple[int, ...] | Unseen | None) -> Compose:
    """A stack whose engine gets these cards."""
    return Compose("vllm-gateway", {"vllm": Service("vllm", cards=given)})


SYSTEM = Memory(total=124_600, available=60_000, cached=50_000, swap_total=0, swap_free=0)


def test_a_card_in_use() -> None:
    """The figures are those that vLLM compares: share of the total against what is free."""
    busy = machine(gpus=(Gpu("NVIDIA GeForce RTX 5090", 32607, 9000, (580,)),))
    finding = only(
        memory.gpu_memory(busy, profile(gpu_memory_utilization=0.9), NOT_ASKED, NOT_ASKED, engine_runs=False)
    )
    assert finding.severity == "error"
    assert "has 23.1 GiB free, and the profile mine takes 28.7" in finding.title
    assert "lower gpu-memory-utilization in /box/mine.yaml to 0.70" in finding.mend


def test_the_engine_that_runs_is_no_trouble() -> None:
    """What it holds itself is not lacking."""
    busy = machine(gpus=(Gpu("NVIDIA GeForce RTX 5090", 32607, 29000, (580,)),))
    assert severities(memory.gpu_memory(busy, profile(), NOT_ASKED, NOT_ASKED, engine_runs=True)) == ["ok"]


def test_a_free_card() -> None:
    """0.92 is taken where the profile says nothing, and fits."""
    assert severities(memory.gpu_memory(machine(), profile(), NOT_ASKED, NOT_ASKED, engine_runs=False)) == [
        "ok"
    ]


def test_unified_memory_that_is_short() -> None:
    """The system's own is counted; what the page cache holds is told, and how to give it back."""
    short = replace(SPARK, available=60_000)
    error, hint = memory.gpu_memory(
        short, profile(gpu_memory_utilization=0.6), SYSTEM, NOT_ASKED, engine_runs=False
    )
    assert (error.severity, hint.severity) == ("error", "hint")
    assert "drop_caches" in error.mend
    assert "48.8 GiB page cache" in hint.evidence


@pytest.mark.parametrize(("share", "found"), [(0.6, ["ok"]), (0.9, ["warning", "ok"])])
def test_too_much_of_unified_memory(share: float, found: list[str]) -> None:
    """The system needs some of it."""
    looked = memory.gpu_memory(
        SPARK, profile(gpu_memory_utilization=share), NOT_ASKED, NOT_ASKED, engine_runs=False
    )
    assert severities(looked) == found


def test_each_card_that_the_engine_uses() -> None:
    """The second one is busy: it matters where the model is spread over both, or it is the one given."""
    two = machine(gpus=(RTX_3090, replace(RTX_3090, used=9000)))
    both, one = profile(tensor_parallel_size=2), profile()
    for flags, given, found in (
        (both, None, ["ok", "error"]),
        (one, None, ["ok"]),
        (one, (1,), ["error"]),
        (both, (0, 1), ["ok", "error"]),
    ):
        looked = memory.gpu_memory(two, flags, NOT_ASKED, compose(given), engine_runs=False)
        assert severities(looked) == found


@pytest.mark.parametrize(
    ("flags", "given", "mend"),
    [
        ({}, None, None),
        ({"tensor_parallel_size": 2}, None, None),
        ({"tensor_parallel_size": 2}, (0, 1), None),
        ({"tensor_parallel_size": 2}, (0,), "count: 2 for the service vllm"),
        ({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, None, "there are 2 cards here"),
        ({}, (2,), "device_ids"),
        ({"tensor_parallel_size": "two"}, (0,), None),
        ({"tensor_parallel_size": 2, "nnodes": 2}, (0,), None),
        ({"tensor_parallel_size": 4, "nnodes": 2}, (0,), "count: 2"),
        ({"data_parallel_size": 2, "data_parallel_size_local": 1}, (0,), None),
        ({"data_parallel_size": 4, "data_parallel_size_local": 2}, (0,), "count: 2"),
        ({"data_parallel_size": 2, "data_parallel_size_local": 1, "nnodes": 2}, (0,), None),
        ({"data_parallel_size": 8, "data_parallel_rank": 3}, (0,), None),
    ],
)
def test_as_many_cards_as_the_flags_spread_the_model_over(
    flags: dict[str, Any], given: tuple[int, ...] | None, mend: str | None
) -> None:
    """vLLM would say so only after a minute, in a traceback of its workers."""
    finding = only(cards.enough(machine(gpus=(RTX_3090, RTX_3090)), profile(**flags), compose(given)))
    assert finding.severity == ("ok" if mend is None else "error")
    assert mend is None or mend in finding.mend


def test_cards_of_other_machines() -> None:
    """What Ray does with them is not seen from here."""
    spread = profile(tensor_parallel_size=2, distributed_executor_backend="ray")
    with pytest.raises(NotLookedError, match="Ray"):
        list(cards.enough(machine(), spread, NOT_ASKED))


@pytest.mark.parametrize("given", [(3,), Unseen("the engine's cards are named, not counted")])
def test_cards_that_are_not_known(given: tuple[int, ...] | Unseen) -> None:
    """Nothing is said of the free memory of one that is not here, or of another in its place."""
    with pytest.raises(NotLookedError, match=r"not here|not counted"):
        list(memory.gpu_memory(machine(), profile(), NOT_ASKED, compose(given), engine_runs=False))


def test_a_card_with_nothing_left() -> None:
    """A share that holds no model is no mend."""
    full = machine(gpus=(replace(RTX_3090, used=24_200),))
    finding = only(memory.gpu_memory(full, profile(), NOT_ASKED, NOT_ASKED, engine_runs=False))
    assert finding.mend == "nvidia-smi shows who uses it; stop that"


def test_without_a_card_nothing_is_compared() -> None:
    """There is nothing to fit into."""
    with pytest.raises(NotLookedError):
        list(memory.gpu_memory(machine(gpus=()), profile(), NOT_ASKED, NOT_ASKED, engine_runs=False))


@pytest.mark.parametrize(
    ("unified", "total", "free", "severity"),
    [
        (True, 0, 0, "ok"),
        (True, 16_000, 16_000, "warning"),
        (True, 16_000, 2_000, "error"),
        (False, 16_000, 15_000, "ok"),
        (False, 64_000, 10_000, "warning"),
    ],
)
def test_swap(unified: bool, total: int, free: int, severity: str) -> None:
    """On unified memory none at all; elsewhere little in use."""
    looked = replace(SYSTEM, swap_total=total, swap_free=free)
    finding = only(memory.swap(SPARK if unified else machine(), looked))
    assert finding.severity == severity
    assert ("swapoff" in finding.mend) == (unified and total > 0)


ENGINE = Holder(3021, "VLLM::EngineCore", 20512)
OTHER = Holder(4410, "ffmpeg", 812)


def test_a_worker_that_was_left_behind() -> None:
    """An engine that does not answer and holds memory is named with its process id."""
    finding = only(memory.holders((ENGINE,), engine_runs=False))
    assert (finding.severity, finding.mend) == ("error", "kill 3021")
    assert "20.0 GiB" in finding.evidence


def test_others_on_the_card() -> None:
    """They are named, and may stay."""
    finding = only(memory.holders((ENGINE, OTHER), engine_runs=True))
    assert (finding.severity, finding.title) == ("warning", "ffmpeg uses the GPU too")
    assert severities(memory.holders((ENGINE,), engine_runs=True)) == ["ok"]
    assert severities(memory.holders((), engine_runs=False)) == ["ok"]
