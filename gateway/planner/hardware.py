"""The machines that can be planned for: memory, bandwidth, and what vLLM decides by the kind of card."""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gateway.planner.problem import PlanProblem
from gateway.planner.units import GIB


@dataclass(frozen=True, slots=True)
class Hardware:
    """One card, or the CPU. `memory_bytes` is what vLLM sees of it, not what is printed on the box.

    `bandwidth_bytes_per_second` is None where nobody told it: speed is unknown then. `utilization` is the
    share that is taken unless the operator says another. `capability` is CUDA's.
    """

    name: str
    title: str
    memory_bytes: int
    bandwidth_bytes_per_second: float | None
    utilization: float
    max_num_seqs: int
    source: str
    capability: tuple[int, int] | None = None
    unified: bool = False
    avx512_bf16: bool = False

    @property
    def cpu(self) -> bool:
        """Whether vLLM's build for CPUs runs there."""
        return self.name == "cpu"

    @property
    def default_batched_tokens(self) -> int:
        """What `vllm serve` takes by itself: `EngineArgs.get_batch_defaults`."""
        if self.cpu or self.memory_bytes < 70 * GIB:
            return 2048
        return 8192 if self.memory_bytes < 160 * GIB else 16384


def _card(
    name: str, title: str, gib: float, gb_a_second: float, utilization: float, seqs: int, source: str,
    capability: tuple[int, int], *, unified: bool = False,
) -> tuple[str, Hardware]:  # fmt: skip
    memory, bandwidth = int(gib * GIB), gb_a_second * 1e9
    return name, Hardware(name, title, memory, bandwidth, utilization, seqs, source, capability, unified)


_CARDS: Mapping[str, Hardware] = MappingProxyType(
    dict(
        [
            _card("spark", "DGX Spark (GB10, 128 GB unified)", 121.7, 273, 0.60, 64,
                  "NVIDIA's data sheet; 121.7 GiB as vLLM reports it", (12, 1), unified=True),
            _card("rtx3090", "RTX 3090, 24 GB", 23.6, 936, 0.90, 16,
                  "NVIDIA's data sheet; 23.6 GiB as vLLM reports it", (8, 6)),
            _card("rtx4090", "RTX 4090, 24 GB", 23.5, 1008, 0.90, 16,
                  "NVIDIA's data sheet; memory less 2 % for the driver", (8, 9)),
            _card("rtx5090", "RTX 5090, 32 GB", 31.4, 1792, 0.90, 32,
                  "NVIDIA's data sheet; 31.4 GiB as vLLM reports it", (12, 0)),
            _card("rtx-pro-6000", "RTX PRO 6000 Blackwell, 96 GB", 94.9, 1792, 0.92, 128,
                  "NVIDIA's data sheet; memory less 1 % for the driver", (12, 0)),
            _card("h100", "H100 SXM, 80 GB", 79.2, 3350, 0.92, 256,
                  "NVIDIA's data sheet; memory less 1 % for the driver", (9, 0)),
            _card("h200", "H200 SXM, 141 GB", 139.8, 4800, 0.92, 256,
                  "NVIDIA's data sheet; memory less 1 % for the driver", (9, 0)),
        ]
    )
)  # fmt: skip
NAMES = (*_CARDS, "cpu", "this")
# What drivers keep for themselves, and how vLLM and NVML count, differ by less; other cards by more.
_MEMORY_AGREES = 0.05


def find(name: str) -> Hardware:
    """The machine of that name. Raises PlanProblem for an unknown one, or if `this` cannot be asked."""
    if name == "cpu":
        return _cpu()
    if name == "this":
        return _this()
    if name not in _CARDS:
        raise PlanProblem(
            f"--hardware {name!r} is not known: choose one of {', '.join(NAMES)}, or describe the card, as "
            "in --memory 24GiB --bandwidth 936GB/s."
        )
    return _CARDS[name]


def of_card(
    title: str,
    memory_bytes: int | None,
    *,
    bandwidth: float | None = None,
    capability: tuple[int, int] | None = None,
) -> Hardware:
    """The card that calls itself so and has so much memory: a known one if both agree, else as it was told.

    `memory_bytes` is None where the driver does not say it, as on a Spark, whose name is enough; `bandwidth`
    is None where it is not known, and then the plan says no speed. Raises PlanProblem without both.
    """
    known = _named(title)
    if known is not None and _agrees(known, memory_bytes):
        return known
    if not memory_bytes:
        raise PlanProblem(
            f"{title} is no card that is known, and its driver does not say its memory: describe it, as in "
            "--memory 24GiB --bandwidth 936GB/s."
        )
    seqs = 256 if memory_bytes >= 70 * GIB else 32
    return Hardware("this", title, memory_bytes, bandwidth, 0.90, seqs, "NVML", capability)


def _named(title: str) -> Hardware | None:
    words = title.lower().replace(" ", "").replace("-", "")
    if "gb10" in words:
        return _CARDS["spark"]
    if "pcie" in words:
        return None  # as much memory as its namesake for SXM, and 0.6 of its bandwidth
    return next((card for name, card in _CARDS.items() if name.replace("-", "") in words), None)


def _agrees(known: Hardware, memory_bytes: int | None) -> bool:
    """Whether a card is more than a namesake: a laptop's, a part of a card (MIG), or a larger one's name."""
    if known.unified or not memory_bytes:
        return True
    return abs(memory_bytes - known.memory_bytes) <= _MEMORY_AGREES * known.memory_bytes


def described(memory_bytes: int, bandwidth_bytes_per_second: float) -> Hardware:
    """A card that the operator describes."""
    seqs = 256 if memory_bytes >= 70 * GIB else 32
    return Hardware(
        "custom",
        "as described",
        memory_bytes,
        bandwidth_bytes_per_second,
        0.90,
        seqs,
        "given by the operator",
    )


def _cpu() -> Hardware:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Hardware(
        "cpu", "this machine's CPU", memory, 40e9, 0.40, 32,
        "memory of this machine; 40 GB/s are two channels of DDR4, a guess", avx512_bf16=_avx512_bf16(),
    )  # fmt: skip


def _avx512_bf16() -> bool:
    """Whether this machine has instructions for which vLLM keeps recurrent states in float32."""
    try:
        return "avx512_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def _this() -> Hardware:
    """The first card that NVML shows."""
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
        try:
            return _first_card(nvml)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise PlanProblem(
            f"--hardware this: NVML does not answer ({error}): is the driver installed, and nvidia-smi well? "
            f"Or name the card, as in --hardware rtx5090 ({', '.join(_CARDS)})."
        ) from error


def _first_card(nvml: Any) -> Hardware:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    title = str(nvml.nvmlDeviceGetName(card))
    memory = _told(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(card).total))
    capability = _told(nvml, lambda: tuple(nvml.nvmlDeviceGetCudaComputeCapability(card)))
    # Of a part of a card (MIG), the whole card's bus is told.
    rate = None if " MIG " in title else _told(nvml, lambda: _bandwidth(nvml, card))
    return of_card(title, memory, bandwidth=rate or None, capability=capability)


def _bandwidth(nvml: Any, card: Any) -> float:
    clock_mhz = nvml.nvmlDeviceGetMaxClockInfo(card, nvml.NVML_CLOCK_MEM)
    return float(nvml.nvmlDeviceGetMemoryBusWidth(card) / 8 * clock_mhz * 1e6 * 2)


def _told(nvml: Any, ask: Callable[[], Any]) -> Any:
    """What NVML answers, or None: a Spark's has no memory of its own to tell of."""
    try:
        return ask()
    except nvml.NVMLError:
        return None
