"""Which types of KV cache vLLM 0.32 computes a model's attention with: what each of its backends takes.

Of `platforms/cuda.py`, `platforms/cpu.py` and `v1/attention/backends` those that vLLM chooses by itself.
16-bit types are in no row, since every card has a backend for them.
"""

from dataclasses import dataclass

from gateway.planner.hardware import Hardware
from gateway.planner.shape import Attention, Latent, Shape

SIXTEEN_BIT = frozenset({"auto", "bfloat16", "float16"})
_E4M3 = frozenset({"fp8", "fp8_e4m3"})
_FP8 = _E4M3 | {"fp8_e5m2"}
_NVFP4 = frozenset({"nvfp4"})
_FLASHINFER_WIDTHS = frozenset({64, 128, 256, 512})
# CPU kernels take an fp8 cache of heads that 32 divides (`_get_attn_isa`).
_CPU_WIDTHS = frozenset({32, 64, 96, 128, 160, 192, 224, 256, 512})
_CPU = (0, 0)
# Where nobody said the card: what starts on one of these may start.
_CARDS = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


@dataclass(frozen=True, slots=True)
class _Row:
    """What a backend takes on capabilities `first` to `last`, of heads as wide as `widths` or of any."""

    backend: str
    types: frozenset[str]
    first: tuple[int, int]
    last: tuple[int, int] = (99, 9)
    widths: frozenset[int] = frozenset()
    sinks: bool = True
    latent: bool = False


_ROWS = (
    _Row("FLASH_ATTN", _E4M3, (9, 0), (9, 9)),  # FlashAttention 3
    _Row("FLASH_ATTN", _E4M3, (10, 0), (10, 9)),  # FlashAttention 4
    _Row("FLASHINFER", _FP8, (8, 0), (8, 9), _FLASHINFER_WIDTHS, sinks=False),
    _Row("FLASHINFER", _FP8, (9, 0), (12, 1), _FLASHINFER_WIDTHS),
    _Row("FLASHINFER", _NVFP4, (8, 0), (9, 9), _FLASHINFER_WIDTHS - {64}, sinks=False),
    _Row("FLASHINFER", _NVFP4, (10, 0), (10, 9), _FLASHINFER_WIDTHS),
    _Row("FLASHINFER", _NVFP4, (12, 0), (12, 1), _FLASHINFER_WIDTHS - {64}, sinks=False),
    # Triton lists fp8 on every card, and its constructor raises before sm_89.
    _Row("TRITON_ATTN", _FP8 | {"fp8_per_token_head"}, (8, 9)),
    _Row("TRITON_ATTN", frozenset({"int8_per_token_head", "int4_per_token_head"}), (0, 1)),
    _Row("CPU_ATTN", _FP8, _CPU, _CPU, _CPU_WIDTHS),
    # The sparse backends, which have fp8_ds_mla and nvfp4_ds_mla, serve no dense model.
    _Row("FLASHMLA", _E4M3, (9, 0), (9, 9), latent=True),
    _Row("FLASHINFER_MLA", _E4M3, (10, 0), (10, 9), latent=True),
    _Row("TRITON_MLA", _E4M3, (8, 9), latent=True),
)  # fmt: skip


def take(shape: Shape, cache_type: str, hardware: Hardware | None) -> bool:
    """Whether vLLM starts with such a cache there; of a card that nobody knows, whether on any."""
    if cache_type in SIXTEEN_BIT:
        return True
    return any(_all(shape, cache_type, capability, "") for capability in _capabilities(hardware))


def flashinfer_takes(shape: Shape, cache_type: str, capability: tuple[int, int]) -> bool:
    """Whether FlashInfer reads such a cache of all of the model's layers on such a card."""
    return _all(shape, cache_type, capability, "FLASHINFER")


def _capabilities(hardware: Hardware | None) -> tuple[tuple[int, int], ...]:
    if hardware is None or (hardware.capability is None and not hardware.cpu):
        return _CARDS
    return (hardware.capability or _CPU,)


def _all(shape: Shape, cache_type: str, capability: tuple[int, int], backend: str) -> bool:
    """Whether there is a backend for each layer; one of that name, if it is said."""
    rows = [
        row
        for row in _ROWS
        if cache_type in row.types and row.first <= capability <= row.last and backend in ("", row.backend)
    ]
    sinks = shape.model_type.startswith("gpt_oss")
    layers = {layer for layer in shape.layers if isinstance(layer, Attention | Latent)}
    return all(any(_serves(row, layer, sinks=sinks) for row in rows) for layer in layers)


def _serves(row: _Row, layer: Attention | Latent, *, sinks: bool) -> bool:
    if isinstance(layer, Latent):
        return row.latent
    return not row.latent and (row.sinks or not sinks) and (not row.widths or layer.key_dim in row.widths)
