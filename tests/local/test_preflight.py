"""What a machine lacks is said before anything is changed, in one line with its mend."""

import shutil
from pathlib import Path

import pytest

from deploy.local import preflight
from deploy.local.problem import Problem

GLIBC = ("glibc", "2.36")


def test_a_machine_that_will_do() -> None:
    """Linux on x86-64 with AVX2, glibc and a Python that has wheels passes."""
    preflight.check_platform("Linux", "x86_64", GLIBC)
    preflight.check_avx2("processor : 0\nflags\t\t: fpu sse2 avx avx2 bmi2\n")
    preflight.check_python((3, 13))


@pytest.mark.parametrize(
    ("system", "machine"), [("Darwin", "arm64"), ("Linux", "aarch64"), ("Darwin", "x86_64")]
)
def test_other_platforms(system: str, machine: str) -> None:
    """macOS and ARM are named as not supported yet, with what to do instead."""
    with pytest.raises(
        Problem, match=rf"{system} on {machine}: not supported yet.*GATEWAY_UPSTREAM_URL"
    ) as found:
        preflight.check_platform(system, machine, GLIBC)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("libc", [("", ""), ("musl", "1.2"), ("glibc", "2.17")])
def test_other_c_libraries(libc: tuple[str, str]) -> None:
    """A C library that the engine's wheel does not run on is named."""
    with pytest.raises(Problem, match=r"needs glibc 2\.28 or newer.*use a distribution"):
        preflight.check_platform("Linux", "x86_64", libc)


def test_no_avx2() -> None:
    """A CPU without AVX2 is named, and what to do in a virtual machine."""
    with pytest.raises(Problem, match=r"no AVX2.*-cpu host"):
        preflight.check_avx2("processor : 0\nflags\t\t: fpu sse2 avx avx512f\n")


def test_python_too_new() -> None:
    """A Python without wheels is named, with the ones that will do."""
    with pytest.raises(Problem, match=r"Python 3\.11 to 3\.14, and this is 3\.15.*PYTHON="):
        preflight.check_python((3, 15))


def test_disk_too_small(tmp_path: Path) -> None:
    """A disk with less than is needed is named with both numbers, for a folder that is not there yet too."""
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(Problem, match=rf"{tmp_path} has .* GB free and .* GB are needed: free some space"):
        preflight.check_space(tmp_path / "not" / "there", free + 10**12)
    preflight.check_space(tmp_path / "not" / "there", 1)
