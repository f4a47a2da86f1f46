"""Free memory of the GPU against what the profile takes, swap, and processes that still hold the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gateway.doctor import spread
from gateway.doctor.finding import Finding, Severity, Unseen, seen
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.machine import memory as memory_of
from gateway.doctor.profile import Profile

if TYPE_CHECKING:  # `make up` imports this, and needs no settings for it
    from gateway.doctor.evidence import Compose, Holder, Memory

DEFAULT_SHARE = 0.92  # vLLM's gpu-memory-utilization where nothing is said (config/cache.py)
LEAST_SHARE = 0.1  # what is less holds no model worth its card
# On a GB10 hosts froze at 0.70 in profiling (vllm-project/vllm#46307), and newer kernels leave 102 of
# 121.7 GiB free.
MOST_OF_UNIFIED = 0.8
MARKS_OF_ENGINE = ("VLLM::", "vllm", "EngineCore")


def too_little(gpu: Gpu, total: int, free: int, share: float, profile: str, file: str) -> Iterator[Finding]:
    """An error if the engine would refuse to start: it asks for `share` of `total` MiB, and `free` are free.

    vLLM: `request_memory` in v1/worker/utils.py.
    """
    if free < share * total:
        title = (
            f"{gpu.name} has {free / 1024:.1f} GiB free, and the profile {profile} takes "
            f"{share * total / 1024:.1f}"
        )
        fits = int((free / total - 0.02) * 100) / 100
        mend = "nvidia-smi shows who uses it; stop that"
        if fits >= LEAST_SHARE:
            mend += f", or lower gpu-memory-utilization in {file} to {fits:.2f}"
        if gpu.memory is None:
            mend += (
                "; the page cache counts with older engines: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches"
            )
        evidence = f"{free / 1024:.1f} of {total / 1024:.1f} GiB free, gpu-memory-utilization {share:g}"
        yield Finding("gpu-memory", "error", title, evidence, mend)


def gpu_memory(
    machine: Machine,
    profile: Profile | Unseen,
    memory: Memory | Unseen,
    compose: Compose | Unseen,
    *,
    engine_runs: bool,
) -> Iterator[Finding]:
    """Whether the engine's share of its cards is free, and sensible where the system shares it."""
    chosen = seen(profile)
    share = chosen.number("gpu-memory-utilization") or DEFAULT_SHARE
    for gpu in spread.used(machine, chosen, compose):
        yield from _of_card(machine, gpu, chosen, share, memory, engine_runs=engine_runs)


def _of_card(
    machine: Machine, gpu: Gpu, chosen: Profile, share: float, memory: Memory | Unseen, *, engine_runs: bool
) -> Iterator[Finding]:
    total, free = memory_of(machine, gpu)
    if machine.unified and share > MOST_OF_UNIFIED:
        title = f"The profile takes {share:.0%} of a memory that the system needs too"
        evidence = f"gpu-memory-utilization {share:g} of {total / 1024:.1f} GiB unified memory"
        mend = f"write gpu-memory-utilization: 0.60 into {chosen.place}"
        yield Finding("gpu-memory", "warning", title, evidence, mend)
    if engine_runs:
        yield Finding("gpu-memory", "ok", "The engine runs and has its memory", _free(free, total))
        return
    found = list(too_little(gpu, total, free, share, chosen.name, chosen.place))
    yield from found or [
        Finding("gpu-memory", "ok", f"{gpu.name} has room for the profile", _free(free, total))
    ]
    if found and machine.unified and not isinstance(memory, Unseen):
        yield from _cached(memory, share * total - free)


def _cached(memory: Memory, lacking: float) -> Iterator[Finding]:
    """On unified memory the page cache counts as free for vLLM 0.32, and did not for engines before it."""
    evidence = f"{memory.cached / 1024:.1f} GiB page cache, {lacking / 1024:.1f} GiB lacking"
    mend = "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches"
    yield Finding("gpu-memory", "hint", "The page cache holds memory that can be given back", evidence, mend)


def _free(free: int, total: int) -> str:
    return f"{free / 1024:.1f} of {total / 1024:.1f} GiB free"


def swap(machine: Machine, memory: Memory | Unseen) -> Iterator[Finding]:
    """Whether the system may swap where the GPU shares its memory: it stalls then, for minutes."""
    looked = seen(memory)
    used = looked.swap_total - looked.swap_free
    evidence = f"{used / 1024:.1f} of {looked.swap_total / 1024:.1f} GiB swap used"
    if machine.unified and looked.swap_total:
        title = "Swap is on, and the GPU shares the system's memory: the machine stalls when it runs short"
        mend = "sudo swapoff -a, and comment its line out in /etc/fstab"
        yield Finding("swap", "error" if used > looked.total / 20 else "warning", title, evidence, mend)
    elif used > looked.total / 4:
        mend = "free -h and ps aux --sort=-rss | head show who takes the memory: stop that"
        yield Finding("swap", "warning", "The system swaps", evidence, mend)
    else:
        yield Finding("swap", "ok", "Swap", evidence if looked.swap_total else "no swap")


def holders(held: Sequence[Holder], *, engine_runs: bool) -> Iterator[Finding]:
    """Which processes hold the GPU already: an engine that died may leave its worker behind."""
    found = False
    for one in held:
        ours = any(mark in one.name for mark in MARKS_OF_ENGINE)
        if ours and engine_runs:
            continue
        found = True
        title = f"{one.name} still holds the GPU" if ours else f"{one.name} uses the GPU too"
        memory = f"{one.memory / 1024:.1f} GiB" if one.memory is not None else "memory not told"
        mend = f"kill {one.pid}" if ours else f"stop it if the engine lacks memory: kill {one.pid}"
        severity: Severity = "error" if ours else "warning"
        yield Finding("gpu-processes", severity, title, f"pid {one.pid}, {memory}", mend)
    if not found:
        evidence = f"{len(held)} processes, the engine's own" if held else "no compute process"
        yield Finding("gpu-processes", "ok", "Nobody else holds the GPU", evidence)
