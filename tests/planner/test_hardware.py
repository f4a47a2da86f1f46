"""The card that is planned for: by its name where its memory agrees, else by what NVML tells of it."""

import sys
import types
from typing import Any

import pytest

from gateway.planner import hardware
from gateway.planner.plan import Options, make
from gateway.planner.problem import PlanProblem
from gateway.planner.source import find

GIB = 2**30


class _NvmlError(Exception):
    pass


def nvml(name: str, **functions: Any) -> types.ModuleType:
    """A module like NVML's with one card."""
    module = types.ModuleType("pynvml")
    answers: dict[str, Any] = {
        "NVMLError": _NvmlError,
        "NVML_CLOCK_MEM": 2,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda _index: "card",
        "nvmlDeviceGetName": lambda _card: name,
        "nvmlDeviceGetMemoryInfo": lambda _card: types.SimpleNamespace(total=48 * GIB),
        "nvmlDeviceGetMaxClockInfo": lambda _card, _kind: 10_001,
        "nvmlDeviceGetMemoryBusWidth": lambda _card: 384,
        "nvmlDeviceGetCudaComputeCapability": lambda _card: (8, 9),
        **functions,
    }
    for key, value in answers.items():
        setattr(module, key, value)
    return module


def this(monkeypatch: pytest.MonkeyPatch, title: str, gib: float, **functions: Any) -> hardware.Hardware:
    """What `--hardware this` is where NVML shows such a card."""
    told = {"nvmlDeviceGetMemoryInfo": lambda _card: types.SimpleNamespace(total=int(gib * GIB)), **functions}
    monkeypatch.setitem(sys.modules, "pynvml", nvml(title, **told))
    return hardware.find("this")


@pytest.mark.parametrize(
    ("title", "gib", "name"),
    [
        ("NVIDIA GeForce RTX 3090", 24.0, "rtx3090"),
        ("NVIDIA GeForce RTX 4090", 23.99, "rtx4090"),
        ("NVIDIA GeForce RTX 5090", 31.84, "rtx5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 95.59, "rtx-pro-6000"),
        ("NVIDIA H100 80GB HBM3", 79.65, "h100"),
        ("NVIDIA H200", 140.4, "h200"),
        ("NVIDIA GB10", 119.7, "spark"),
    ],
)
def test_this_is_a_known_card(monkeypatch: pytest.MonkeyPatch, title: str, gib: float, name: str) -> None:
    """By the name and the memory that NVML says, which is a little more than vLLM sees."""
    assert this(monkeypatch, title, gib) == hardware.find(name)


@pytest.mark.parametrize(
    ("title", "gib"),
    [
        ("NVIDIA GH200 480GB", 95.6),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", 23.9),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16.0),
        ("NVIDIA H100 NVL", 93.6),
        ("NVIDIA H100 PCIe", 79.65),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.8),
    ],
)
def test_a_namesake_is_planned_from_what_was_told(
    monkeypatch: pytest.MonkeyPatch, title: str, gib: float
) -> None:
    """A card whose name holds that of a known one, and whose memory or bandwidth is another."""
    found = this(monkeypatch, title, gib)
    assert (found.name, found.title, found.memory_bytes) == ("this", title, int(gib * GIB))


def test_of_a_part_of_a_card_no_speed_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML tells the bus of the whole: a plan then says no speed and no comfort, and all else."""
    found = this(monkeypatch, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.8)
    assert found.bandwidth_bytes_per_second is None
    plan = make(find("qwen3-8b-awq"), found, Options())
    assert plan.fits
    assert (plan.ceiling, plan.steps, plan.comfortable) == (None, (), None)


def test_what_nvml_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark has no memory of its own: its name is enough, and no other unknown card's is."""

    def fail(*_: object) -> None:
        raise _NvmlError("Not Supported")

    silent = {"nvmlDeviceGetMemoryInfo": fail, "nvmlDeviceGetMemoryBusWidth": fail}
    assert this(monkeypatch, "NVIDIA GB10", 0, **silent).name == "spark"
    with pytest.raises(PlanProblem, match=r"NVIDIA Thor is no card that is known.*--memory 24GiB"):
        this(monkeypatch, "NVIDIA Thor", 0, **silent)


def test_this_is_another_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory as NVML says, bandwidth from its bus and clock."""
    found = this(monkeypatch, "NVIDIA RTX 6000 Ada", 48)
    assert found.memory_bytes == 48 * GIB
    assert found.bandwidth_bytes_per_second is not None
    assert round(found.bandwidth_bytes_per_second / 1e9) == 960
    assert found.capability == (8, 9)


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"])
def test_this_without_a_card_that_answers(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """No driver, no card, a card that is lost: NVML's own words and the mend."""

    def fail(*_: object) -> None:
        raise _NvmlError("Driver Not Loaded")

    monkeypatch.setitem(sys.modules, "pynvml", nvml("", **{function: fail}))
    with pytest.raises(PlanProblem, match=r"NVML does not answer \(Driver Not Loaded\)"):
        hardware.find("this")
