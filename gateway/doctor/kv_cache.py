"""Which types of KV cache an engine's card computes with."""

import re

from gateway.doctor import spread
from gateway.doctor.evidence import Compose
from gateway.doctor.finding import NotLookedError, Unseen
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.profile import Profile

HALF_WITHOUT_FP8 = "int8_per_token_head"
# Cards without an fp8e4nv type in Triton (vllm-project/vllm#26431): before sm_89.
_WITHOUT_FP8 = re.compile(r"RTX 30\d\d|RTX A\d|\bA(10|16|30|40|100)\b|RTX 20|\bV100|\bT4\b")


def lacks_fp8(profile: Profile, gpu: Gpu) -> bool:
    """Whether the card has no fp8 for the backend that computes attention."""
    return bool(_WITHOUT_FP8.search(gpu.name)) and not _by_flashinfer(profile)


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
    return HALF_WITHOUT_FP8 if any(lacks_fp8(profile, gpu) for gpu in used) else "fp8"


def _by_flashinfer(profile: Profile) -> bool:
    """Whether attention is computed by FlashInfer, which has fp8 kernels for these cards too."""
    config = profile.flags.get("attention-config")
    backend = profile.flags.get("attention-backend") or profile.flags.get("attention-config.backend")
    if isinstance(config, dict):
        backend = backend or config.get("backend")
    return str(backend).lower() == "flashinfer"
