"""Which cards start with a KV cache in fp8, by their capability or their name, and by which backend."""

from typing import Any

import pytest

from gateway.doctor.before import profile as judges
from gateway.doctor.machine import Gpu
from tests.doctor.evidence import RTX_3090, machine, only, profile, severities

FOR_3090 = machine(gpus=(RTX_3090,))


@pytest.mark.parametrize(
    "flags",
    [
        {"attention_backend": "flashinfer"},
        {"attention_config": {"backend": "FLASHINFER"}},
        {"attention_config.backend": "FLASHINFER"},
    ],
)
def test_fp8_by_flashinfer(flags: dict[str, Any]) -> None:
    """It has the kernels that Triton lacks on an RTX 3090; none per head, and none for older cards."""
    assert severities(judges.flags(profile(model="a/b", kv_cache_dtype="fp8", **flags), FOR_3090)) == ["ok"]
    by_head = profile(model="a/b", kv_cache_dtype="fp8_per_token_head", **flags)
    assert severities(judges.flags(by_head, FOR_3090)) == ["error"]
    older = machine(gpus=(Gpu("Tesla T4", 15360, 0, (580,), (7, 5)),))
    found = only(judges.flags(profile(model="a/b", kv_cache_dtype="fp8", **flags), older))
    assert (found.severity, "flashinfer" in found.mend) == ("error", False)


@pytest.mark.parametrize("backend", ["TRITON_ATTN", "triton_mla", "FLASH_ATTN", "FLEX_ATTENTION"])
def test_fp8_by_another_backend(backend: str) -> None:
    """It starts with none of them on an RTX 3090, and `auto` is none."""
    chosen = profile(model="a/b", kv_cache_dtype="fp8", attention_backend=backend)
    found = only(judges.flags(chosen, FOR_3090))
    assert (found.severity, "attention-backend: flashinfer" in found.mend) == ("error", True)
    by_itself = profile(model="a/b", kv_cache_dtype="fp8", attention_backend="auto")
    assert severities(judges.flags(by_itself, FOR_3090)) == ["warning"]


def test_fp8_that_flashinfer_cannot_serve() -> None:
    """Which models that are is said, and what they take instead."""
    found = only(judges.flags(profile(model="a/b", kv_cache_dtype="fp8"), FOR_3090))
    for words in ("attention sinks", "MLA", "kv-cache-dtype: auto", "int8_per_token_head"):
        assert words in found.mend


AMPERE = (
    "NVIDIA A2", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A16", "NVIDIA A30", "NVIDIA A40",
    "NVIDIA A100-SXM4-80GB", "NVIDIA A800-SXM4-80GB", "NVIDIA RTX A4000", "NVIDIA RTX A5000",
    "NVIDIA RTX A6000", "NVIDIA GeForce RTX 3060 Laptop GPU",
)  # fmt: skip
OLDER = (
    "Quadro RTX 8000", "NVIDIA TITAN RTX", "Tesla T4", "Tesla V100-SXM2-32GB", "NVIDIA GeForce RTX 2080 Ti",
    "NVIDIA GeForce GTX 1080 Ti",
)  # fmt: skip
NEWER = (
    "NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 4000 Ada Generation", "NVIDIA RTX 2000 Ada Generation",
    "NVIDIA RTX 3000 Ada Generation Laptop GPU", "NVIDIA L4", "NVIDIA L40S", "NVIDIA GeForce RTX 4090",
    "NVIDIA GB10", "NVIDIA H100 80GB HBM3", "NVIDIA RTX PRO 2000 Blackwell", "NVIDIA B200",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        *((name, "warning") for name in AMPERE),
        *((name, "error") for name in OLDER),
        *((name, "ok") for name in NEWER),
    ],
)
def test_fp8_by_the_name_of_a_card(name: str, severity: str) -> None:
    """What an old driver leaves to go by."""
    fp8 = profile(model="a/b", kv_cache_dtype="fp8")
    assert severities(judges.flags(fp8, machine(gpus=(Gpu(name, 24576, 0, (470,)),)))) == [severity]


@pytest.mark.parametrize(
    ("capability", "severity"),
    [((7, 5), "error"), ((8, 0), "warning"), ((8, 7), "warning"), ((8, 9), "ok"), ((12, 0), "ok")],
)
def test_fp8_by_the_capability_of_a_card(capability: tuple[int, int], severity: str) -> None:
    """The driver's word goes before the name."""
    fp8 = profile(model="a/b", kv_cache_dtype="fp8")
    for name in ("NVIDIA Something", "NVIDIA GeForce RTX 3090"):
        looked = machine(gpus=(Gpu(name, 24576, 0, (580,), capability),))
        assert severities(judges.flags(fp8, looked)) == [severity]
