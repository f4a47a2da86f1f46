"""Which types of KV cache an engine's card computes with."""

import re
from typing import Literal

from gateway.doctor import spread
from gateway.doctor.evidence import Compose
from gateway.doctor.finding import NotLookedError, Unseen
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.profile import Profile

HALF_WITHOUT_FP8 = "int8_per_token_head"
# In v1/attention/backends of vLLM: Triton has its type fp8e4nv from sm_89 on (triton_attn.py), FlashInfer
# reads fp8 from sm_80 on (flashinfer.py), FlashAttention on sm_90 and sm_100 alone (fa_utils.py).
FP8_IN_TRITON = (8, 9)
FP8_IN_FLASHINFER = (8, 0)
OF_FLASHINFER = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})
# For a driver that does not tell the capability. Ada's workstation cards are called as older ones, and `Ada`.
_BEFORE_AMPERE = re.compile(
    r"(?!.*\bAda\b).*(Quadro|TITAN|\bGTX?\b|RTX 20\d\d|Tesla [KMP]|\bT\d{1,4}\b|\b[PV]100|\bP40?\b)"
)
_AMPERE = re.compile(
    r"(?!.*\bAda\b).*(RTX 30\d\d|RTX A\d{3,4}|\bA(2|10[GM]?|16|30X?|40|100[DX]?|800)\b|\bOrin\b)"
)
Fp8 = Literal["yes", "by FlashInfer", "no"]


def capability(gpu: Gpu) -> tuple[int, int] | None:
    """CUDA's, as the driver says it, else of older cards by their name; None for one that is not known."""
    if gpu.capability is not None:
        return gpu.capability
    if _BEFORE_AMPERE.match(gpu.name):
        return (7, 5)
    return (8, 6) if _AMPERE.match(gpu.name) else None


def fp8(profile: Profile, gpu: Gpu, cache: str = "fp8") -> Fp8:
    """Whether an fp8 cache of that type starts on the card; `by FlashInfer` if vLLM chooses that backend.

    It does by itself, unless the model is one that FlashInfer cannot serve. A card that nobody knows is new.
    """
    has, backend = capability(gpu), _backend(profile)
    if has is None or has >= FP8_IN_TRITON:
        return "yes"
    if has < FP8_IN_FLASHINFER or cache not in OF_FLASHINFER:
        return "no"
    if backend == "flashinfer":
        return "yes"
    return "no" if backend else "by FlashInfer"


def half(profile: Profile, machine: Machine | Unseen, compose: Compose | Unseen) -> str:
    """The type that halves the KV cache on the engine's card; empty where it is halved already."""
    if str(profile.flags.get("kv-cache-dtype") or "auto") not in {"auto", "bfloat16", "float16"}:
        return ""
    if isinstance(machine, Unseen) or not machine.gpus:
        return "fp8"
    try:
        used = spread.used(machine, profile, compose)
    except NotLookedError:
        used = list(machine.gpus)
    return "fp8" if all(fp8(profile, gpu) == "yes" for gpu in used) else HALF_WITHOUT_FP8


def _backend(profile: Profile) -> str:
    """The attention backend that is chosen, in small letters; empty where vLLM chooses."""
    config = profile.flags.get("attention-config")
    backend = profile.flags.get("attention-backend") or profile.flags.get("attention-config.backend")
    if isinstance(config, dict):
        backend = backend or config.get("backend")
    named = str(backend or "").lower()
    return "" if named == "auto" else named
