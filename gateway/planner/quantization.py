"""How a checkpoint stores its weights, from the `quantization_config` of its config.json."""

from collections.abc import Mapping
from typing import Any

from gateway.planner.fields import Fields
from gateway.planner.shape import Quantization

# Bytes a weight with its scales: 4 bit with a 16-bit scale and a 4-bit zero point for 128 weights, NVFP4 with
# an 8-bit scale for 16, MXFP4 with one for 32.
_INT4 = 0.5 + 2.5 / 128
_NVFP4 = 0.5 + 1 / 16
_MXFP4 = 0.5 + 1 / 32


def read(config: Fields, dtype_bytes: int) -> Quantization:
    """How the weights are stored. Raises PlanProblem for a method without a known size."""
    own = config.part("quantization_config") or config.part("compression_config")
    if own is None:
        text = config.part("text_config")
        own = text.part("quantization_config") if text else None
    if own is None:
        return Quantization("none", dtype_bytes, dtype_bytes)
    method = own.text("quant_method", default="modelopt" if own.has("quant_algo") else "").replace("_", "-")
    size = _size(own, method)
    # gpt-oss: the experts alone.
    dense = float(dtype_bytes) if method == "mxfp4" else size
    return Quantization(_name(own, method), size, dense, _kv_cache_dtype(own, method))


def _size(own: Fields, method: str) -> float:
    if method in ("fp8", "fbgemm-fp8", "modelopt", "finegrained-fp8") and "4" not in _algorithm(own):
        return 1.0
    if method == "mxfp4":
        return _MXFP4
    if method.startswith("modelopt") or "nvfp4" in method:
        return _NVFP4
    if method in ("awq", "gptq", "auto-round", "gptq-marlin", "awq-marlin", "inc"):
        bits = own.integer("bits", "w_bit", default=4)
        return _INT4 if bits == 4 else bits / 8
    if method == "bitsandbytes":
        return 0.5 + 1 / 16 if own.flag("load_in_4bit", default=False) else 1.0
    if method == "compressed-tensors":
        return _compressed(own)
    raise own.missing(
        "quant_method",
        f"is {method or 'missing'!r}: sizes are known for fp8, modelopt, mxfp4, awq, gptq, auto-round, "
        "bitsandbytes and compressed-tensors",
    )


def _compressed(own: Fields) -> float:
    """The first group's weights: all but the exceptions are of it."""
    groups = own.part("config_groups")
    if groups is None or not groups.values:
        raise own.missing("config_groups")
    group = groups.part(next(iter(groups.values)))
    weights = group.part("weights") if group else None
    if weights is None:
        raise groups.missing("weights")
    bits = weights.integer("num_bits", least=1)
    if bits != 4:
        return bits / 8
    return _NVFP4 if weights.text("type", default="int") == "float" else _INT4


def _algorithm(own: Fields) -> str:
    inner = own.part("quantization") or own
    return inner.text("quant_algo", default="").lower()


def _name(own: Fields, method: str) -> str:
    algorithm = _algorithm(own)
    if method.startswith("modelopt"):
        return "nvfp4" if "4" in algorithm or method.endswith("fp4") else "fp8"
    if method == "compressed-tensors":
        size = _compressed(own)
        return {1.0: "fp8 or int8", _NVFP4: "nvfp4", _INT4: "int4"}.get(size, method)
    return {"awq": "int4", "gptq": "int4", "auto-round": "int4"}.get(method, method)


def _kv_cache_dtype(own: Fields, method: str) -> str:
    """vLLM's `get_kv_cache_quant_algo_string`: modelopt checkpoints alone decide it."""
    if not method.startswith("modelopt"):
        return "auto"
    inner = own.part("quantization") or own
    said: Any = None
    for place, name in (
        (inner, "kv_cache_scheme"),
        (own, "kv_cache_scheme"),
        (inner, "kv_cache_quant_algo"),
        (own, "kv_cache_quant_algo"),
    ):
        said = said or place.values.get(name)
    if isinstance(said, Mapping):
        if said.get("dynamic") is False and said.get("num_bits") == 8 and said.get("type") == "float":
            return "fp8"
        return "nvfp4" if said.get("num_bits") == 4 and said.get("type") == "float" else "auto"
    return {"fp8": "fp8", "fp8_e4m3": "fp8", "nvfp4": "nvfp4"}.get(str(said).lower(), "auto")
