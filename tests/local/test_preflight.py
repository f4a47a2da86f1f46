"""What a machine lacks is said before anything is changed, in one line with its mend."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local import preflight
from deploy.local.problem import Problem
from tests.local.machines import APPLE, ARM, INTEL_MAC, LINUX


def test_a_machine_that_will_do() -> None:
    """Linux on x86-64 with AVX2, glibc and a Python that has wheels passes."""
    preflight.check_engine(LINUX)
    assert preflight.wheel_trouble(LINUX) == ""


@pytest.mark.parametrize("machine", [APPLE, ARM, INTEL_MAC])
def test_other_platforms(machine: preflight.Machine) -> None:
    """macOS and ARM are named, with what to do instead; llama.cpp has a wheel for each."""
    with pytest.raises(
        Problem, match=rf"{machine.system} on {machine.processor}\. ENGINE=llamacpp.*GATEWAY_UPSTREAM_URL"
    ) as found:
        preflight.check_engine(machine)
    assert "\n" not in str(found.value)
    assert preflight.wheel_trouble(machine) == ""


@pytest.mark.parametrize("libc", [("", ""), ("musl", "1.2"), ("glibc", "2.17")])
def test_other_c_libraries(libc: tuple[str, str]) -> None:
    """A C library that vLLM's wheel does not run on is named; an old glibc will do for llama.cpp's."""
    machine = replace(LINUX, libc=libc)
    named = " ".join(libc).strip() or "another C library"
    assert f"needs glibc 2.28 or newer, and this system has {named}." in preflight.vllm_trouble(machine)
    assert bool(preflight.wheel_trouble(machine)) == (libc[0] != "glibc")


def test_no_avx2() -> None:
    """A CPU without AVX2 is named, and what to do in a virtual machine; both ready builds need it."""
    flags = preflight.cpu_flags("processor : 0\nflags\t\t: fpu sse2 avx avx512f\n")
    old = replace(LINUX, cpu_flags=flags)
    assert flags == {"fpu", "sse2", "avx", "avx512f"}
    assert "needs AVX2" in preflight.vllm_trouble(old)
    assert "-cpu host" in preflight.vllm_trouble(old)
    assert preflight.wheel_trouble(old) == (
        "The ready build of llama.cpp needs a CPU with avx2, bmi2, f16c, fma."
    )


@pytest.mark.parametrize(
    "machine",
    [replace(APPLE, macos="12.7"), replace(ARM, system="FreeBSD"), replace(ARM, processor="riscv64")],
)
def test_no_ready_build(machine: preflight.Machine) -> None:
    """What no wheel of llama.cpp was made for is named: its source is compiled there."""
    assert preflight.wheel_trouble(machine).startswith("There is no ready build of llama.cpp for ")
    assert machine.processor in preflight.wheel_trouble(machine)


def test_python_too_new() -> None:
    """A Python without wheels is named, with the ones that will do."""
    said = preflight.vllm_trouble(replace(LINUX, python=(3, 15)))
    assert "Python 3.11 to 3.14, and this is 3.15" in said
    assert "PYTHON=" in said


def test_this_machine(tmp_path: Path) -> None:
    """A look finds what decides, with and without /proc/cpuinfo."""
    assert preflight.look(tmp_path / "none").cpu_flags == frozenset()
    assert preflight.look().system


def test_disk_too_small(tmp_path: Path) -> None:
    """A disk with less than is needed is named with both numbers, for a folder that is not there yet too."""
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(Problem, match=rf"{tmp_path} has .* GB free and .* GB are needed: free some space"):
        preflight.check_space(tmp_path / "not" / "there", free + 10**12)
    preflight.check_space(tmp_path / "not" / "there", 1)
