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
_MOST_BITS = 32
# What ModelOpt up to 0.29 wrote into a file of its own.
_MODELOPT = {
    "fp8": "modelopt",
    "fp8_per_channel_per_token": "modelopt",
    "fp8_pb_wo": "modelopt",
    "nvfp4": "modelopt-fp4",
}


def read(
    config: Fields, dtype_bytes: int, *, beside: Fields | None = None, latent: bool = False
) -> Quantization:
    """How the weights are stored. Raises PlanProblem for a method without a known size.

    `beside` is the hf_quant_config.json of such a model, which counts where config.json has nothing.
    `latent` tells whether the model's attention is latent: its cache is not of the type that
    compressed-tensors names.
    """
    own = config.part("quantization_config") or beside or config.part("compression_config")
    if own is None:
        text = config.part("text_config")
        own = text.part("quantization_config") if text else None
    if own is None:
        return Quantization("none", dtype_bytes, dtype_bytes)
    method = _method(own)
    size = _size(own, method)
    # gpt-oss: the experts alone.
    dense = float(dtype_bytes) if method == "mxfp4" else size
    cache = "auto" if latent and method == "compressed-tensors" else _kv_cache_dtype(own, method)
    return Quantization(_name(own, method), size, dense, cache, _cache_scales(own, method))


def _method(own: Fields) -> str:
    """As vLLM's `_normalize_quantization_config` names it."""
    inner, producer = own.part("quantization"), own.part("producer")
    if producer and producer.text("name", default="") == "modelopt" and inner and inner.has("quant_algo"):
        algorithm = _algorithm(own)
        if algorithm not in _MODELOPT:
            raise inner.missing(
                "quant_algo", f"is {algorithm!r}, and one of {', '.join(_MODELOPT)} is needed"
            )
        return _MODELOPT[algorithm]
    default = "modelopt" if own.has("quant_algo") else ""
    return own.text("quant_method", default=default).lower().replace("_", "-")


def _size(own: Fields, method: str) -> float:
    if method in ("fp8", "fbgemm-fp8", "modelopt", "finegrained-fp8") and "4" not in _algorithm(own):
        return 1.0
    if method == "mxfp4":
        return _MXFP4
    if method.startswith("modelopt") or "nvfp4" in method:
        return _NVFP4
    if method in ("awq", "gptq", "auto-round", "gptq-marlin", "awq-marlin", "inc"):
        bits = _bits(own, "bits", own.integer("bits", "w_bit", default=4))
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
    bits = _bits(weights, "num_bits", weights.integer("num_bits"))
    if bits != 4:
        return bits / 8
    return _NVFP4 if weights.text("type", default="int") == "float" else _INT4


def _bits(own: Fields, name: str, bits: int) -> int:
    if not 1 <= bits <= _MOST_BITS:
        raise own.missing(name, f"is {bits:,}, and 1 to {_MOST_BITS} can be right")
    return bits


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


def _cache_scales(own: Fields, method: str) -> bool:
    """Whether vLLM's `get_quant_method` has one for attention, which `_init_kv_cache_quant` asks."""
    if method == "compressed-tensors":
        return own.part("kv_cache_scheme") is not None
    return method == "fp8" or method.startswith("modelopt")


def _kv_cache_dtype(own: Fields, method: str) -> str:
    """vLLM's `get_kv_cache_quant_algo_string`, and what its `Attention` takes from compressed-tensors."""
    if method == "compressed-tensors":
        return _compressed_cache(own)
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


def _compressed_cache(own: Fields) -> str:
    """Of 8-bit floats or of the model's own type: vLLM refuses all others."""
    scheme = own.part("kv_cache_scheme")
    if scheme is None:
        return "auto"
    kind, bits = scheme.text("type", default="int"), scheme.integer("num_bits", default=8)
    if (kind, bits) != ("float", 8):
        why = f"is {kind!r} of {bits} bits, and vLLM has such a cache of 8-bit floats alone"
        raise scheme.unknown("type", why, "Set kv_cache_scheme to null: the cache is then of 16 bits.")
    return "fp8"
