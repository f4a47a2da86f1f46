"""Which engine `make up` runs: vLLM where it can, llama.cpp elsewhere, and what ENGINE says."""

from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local import engines, stack
from deploy.local.places import Places
from deploy.local.preflight import Machine
from deploy.local.problem import Problem
from tests.local.machines import APPLE, ARM, INTEL_MAC, LINUX, MODERN

MUSL = replace(LINUX, libc=("musl", "1.2"))
OLD = replace(LINUX, cpu_flags=MODERN - {"avx2"})
NEW_PYTHON = replace(LINUX, python=(3, 15))


def test_vllm_where_it_can_run() -> None:
    """Without a word about it."""
    assert engines.choose({}, LINUX) == engines.Choice("vllm")
    assert engines.choose({"ENGINE": ""}, LINUX) == engines.Choice("vllm")


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (APPLE, "Darwin on arm64"),
        (INTEL_MAC, "Darwin on x86_64"),
        (ARM, "Linux on aarch64"),
        (MUSL, "glibc 2.28 or newer"),
        (OLD, "AVX2"),
        (NEW_PYTHON, "Python 3.11 to 3.14"),
    ],
)
def test_llamacpp_elsewhere(machine: Machine, why: str) -> None:
    """With one line that says which engine it is, and why."""
    found = engines.choose({}, machine)
    assert found.name == "llamacpp"
    assert found.why.startswith("The engine is llama.cpp: vLLM's CPU build ")
    assert why in found.why
    assert "\n" not in found.why


def test_as_engine_says() -> None:
    """ENGINE=llamacpp has its way, and that is said; so has ENGINE=vllm."""
    assert engines.choose({"ENGINE": "llamacpp"}, LINUX).name == "llamacpp"
    assert "as ENGINE says" in engines.choose({"ENGINE": "llamacpp"}, LINUX).why
    assert engines.choose({"ENGINE": "vllm"}, LINUX) == engines.Choice("vllm")


def test_vllm_where_it_cannot_run() -> None:
    """Insisting on it ends with one line that says what to do."""
    with pytest.raises(Problem, match=r"this is Darwin on arm64\. ENGINE=llamacpp serves the same model"):
        engines.choose({"ENGINE": "vllm"}, APPLE)


@pytest.mark.parametrize("value", ["ollama", "VLLM", "llama.cpp", " "])
def test_bad_value(value: str) -> None:
    """Anything else ends with one line that names the values."""
    with pytest.raises(Problem, match=rf"^ENGINE={value} is none: it is vllm or llamacpp, or unset") as found:
        engines.choose({"ENGINE": value}, LINUX)
    assert "\n" not in str(found.value)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A checkout whose stack was started with llama.cpp."""
    found = Places(tmp_path)
    found.run.mkdir(parents=True)
    found.engine.write_text("llamacpp\n")
    return found


@pytest.mark.parametrize("environ", [{}, {"ENGINE": ""}, {"ENGINE": "llamacpp"}])
def test_a_stack_that_runs(places: Places, environ: dict[str, str]) -> None:
    """A second `make up` is about the engine that runs, whatever else this machine could run."""
    assert stack.running_engine(places, environ) == "llamacpp"


def test_another_engine_for_a_stack_that_runs(places: Places) -> None:
    """It is not changed under the feet of callers: one line says how it is."""
    with pytest.raises(Problem, match=r"^The stack runs with llama\.cpp: make down first"):
        stack.running_engine(places, {"ENGINE": "vllm"})


def test_a_stack_from_before(tmp_path: Path) -> None:
    """A stack that was started before there was a choice runs vLLM."""
    assert engines.recorded(tmp_path / "engine") == "vllm"
