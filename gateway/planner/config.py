"""Reads a model's config.json, in each form that is found, into one `Shape`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gateway.planner import attention, defaults, lengths, parameters, quantization, states, vision
from gateway.planner.fields import Fields
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Latent, Layer, Shape, State
from gateway.planner.weights import json_object

# Compared with vLLM's own functions in tests/planner, or of the same class there as one that was.
KNOWN = frozenset(
    {
        "axk1",
        "cohere2",
        "deepseek_v2",
        "deepseek_v3",
        "falcon_h1",
        "falcon_mamba",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "gemma3n",
        "gemma3n_text",
        "gemma4",
        "gemma4_text",
        "glm4_moe",
        "glm4_moe_lite",
        "gpt2",
        "gpt_oss",
        "granite",
        "granitemoehybrid",
        "jamba",
        "kimi_k2",
        "laguna",
        "lfm2",
        "lfm2_moe",
        "llama",
        "llama4",
        "llama4_text",
        "mamba",
        "mamba2",
        "mistral",
        "mixtral",
        "nemotron_h",
        "olmo3",
        "phi3",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        "qwen3_5_text",
        "qwen3_moe",
        "qwen3_next",
    }
)
_WITHOUT_CACHE = frozenset(
    {"bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "nomic_bert", "modernbert", "deberta-v2"}
)
_TYPES: Mapping[str, int] = {
    "bfloat16": 2,
    "float16": 2,
    "float32": 2,
    "half": 2,
}  # vLLM makes float32 bfloat16
_STATES = re.compile(
    r"mamba_|ssm_|linear_attn|attn_layer_indices|conv_L_cache|rwkv|state_size|lightning|layer_group_size"
)
_RENAMED = MappingProxyType(
    {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_embd": "hidden_size"}
)
# Of classes that `defaults` has not, these tie by themselves, and those whose name begins so.
_TIED = frozenset({"gpt_bigcode", "opt", "bloom", "starcoder2", "smollm3", "ernie4_5", "ernie4_5_moe"})
_TIED_BEGINNINGS = ("gemma", "cohere", "lfm2")
# Where ModelOpt up to 0.29 said how it had quantised: vLLM reads it where config.json does not.
BESIDE = "hf_quant_config.json"
_OTHER = "It is not planned for here: the log of a start says what its cache holds."


def load(folder: Path) -> Shape:
    """The shape of the model in a folder. Raises PlanProblem if its config.json is absent or not JSON."""
    values = _file(folder / "config.json")
    beside = folder / BESIDE
    own = not wants_beside(values) or not beside.is_file()
    return read(
        values, str(folder / "config.json"), beside=None if own else Fields(_file(beside), str(beside))
    )


def _file(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise PlanProblem(
            f"{file} cannot be read ({error.strerror}): name the model's own folder."
        ) from error
    return json_object(text, str(file))


def wants_beside(values: Mapping[str, Any]) -> bool:
    """Whether the file named BESIDE would count, if the model has one."""
    return values.get("quantization_config") is None


def read(values: Any, source: str, *, beside: Fields | None = None) -> Shape:
    """The shape that a config describes; `source` names it in errors, `beside` is the file named BESIDE.

    Raises PlanProblem, naming the file and the field that is missing, wrong or unknown.
    """
    if not isinstance(values, dict):
        raise PlanProblem(f"{source} holds no JSON object: it is no model's config.json.")
    whole = Fields(values, source)
    text = whole.part("text_config") or whole.part("llm_config") or whole
    model_type = text.text("model_type", default="") or whole.text("model_type")
    said = _renamed(text, model_type)
    _reject(said, model_type)
    text = defaults.filled(said, model_type, part=text is not whole)
    dtype_bytes = _dtype_bytes(text if _named_type(text) else whole)
    layers = _layers(text, model_type, dtype_bytes)
    reach, seen = lengths.read(text, layers), whole.part("vision_config")
    hidden, vocabulary = text.integer("hidden_size", "d_model", least=1), text.integer("vocab_size", least=1)
    return Shape(
        model_type=model_type,
        layers=layers,
        dtype_bytes=dtype_bytes,
        max_model_len=reach.longest,
        unasked_model_len=reach.unasked,
        hidden=hidden,
        vocabulary=vocabulary,
        parameters=parameters.count(text, layers, vocabulary, hidden, tied=_tied(whole, said, model_type)),
        quantization=quantization.read(
            whole, dtype_bytes, beside=beside, latent=any(isinstance(one, Latent) for one in layers)
        ),
        model_attention=_model_attention(text, layers),
        draft_layers=_draft_layers(text, layers),
        query_heads=text.integer("num_attention_heads", default=0),
        vision=seen is not None,
        vision_parameters=vision.count(seen) if seen else None,
        known=model_type in KNOWN,
        aligned=states.unseen(text, model_type, dtype_bytes),
        attention_free=model_type in states.ATTENTION_FREE,
        widest=parameters.widest(text, hidden),
    )


def _renamed(config: Fields, model_type: str) -> Fields:
    """With GPT-2's names as all later models have them, and Gemma 3n's widths as their mean."""
    named = {
        new: config.values[old] for old, new in _RENAMED.items() if config.has(old) and not config.has(new)
    }
    if isinstance(config.values.get("intermediate_size"), list):
        widths = config.numbers("intermediate_size") or (0,)
        named["intermediate_size"] = sum(widths) // len(widths)
    return replace(config, values={**config.values, **named, "model_type": model_type})


def _reject(config: Fields, model_type: str) -> None:
    """Raises PlanProblem for models whose caches would be counted wrongly rather than not at all."""
    if model_type in _WITHOUT_CACHE:
        raise config.unknown("model_type", f"is {model_type!r}: an encoder, which keeps no KV cache", _OTHER)
    if config.flag("is_encoder_decoder", default=False) or config.has("encoder_layers"):
        raise config.unknown("model_type", f"is {model_type!r}: it has an encoder with a cache", _OTHER)
    if config.has("n_heads") and not config.has("num_attention_heads"):
        why = f"is {model_type!r}: its config has other names for layers and heads"
        raise config.unknown("model_type", why, _OTHER)
    found = _state_field(config) if states.reader(model_type) is None else None
    if config.has("kv_lora_rank") and model_type not in attention.LATENT_TYPES:
        beside = f" beside layers with a state ({found})," if found else ","
        why = f"is {model_type!r}: latent attention{beside} and how its layers keep it is not known"
        raise config.unknown("model_type", why, _OTHER)
    if found:
        why = f"is {model_type!r}: it has {found}, and how its layers keep a state is not known"
        raise config.unknown("model_type", why, _OTHER)


def _state_field(config: Fields) -> str | None:
    """A field that only models with states have, or MiniMax's list if one of its layers has one."""
    if 0 in (config.numbers("attn_type_list") or ()):
        return "attn_type_list"
    return next((name for name in config.values if _STATES.match(name) and config.has(name)), None)


def _layers(config: Fields, model_type: str, dtype_bytes: int) -> tuple[Layer, ...]:
    if read_states := states.reader(model_type):
        return read_states(config, dtype_bytes)
    if model_type in attention.LATENT_TYPES and config.has("kv_lora_rank"):
        return (attention.latent(config),) * config.integer("num_hidden_layers", least=1)
    return attention.layers(config, model_type)


def _model_attention(config: Fields, layers: tuple[Layer, ...]) -> Attention | Latent | None:
    """What vLLM takes for a layer of the model as a whole, where it aligns the pages of a hybrid."""
    kept = [layer for layer in layers if not isinstance(layer, State)]
    if not kept:
        return None
    return attention.latent(config) if isinstance(kept[0], Latent) else attention.heads(config)


def _draft_layers(config: Fields, layers: tuple[Layer, ...]) -> tuple[Attention | Latent, ...]:
    """The layers of the model's own draft head, which are as its full-attention layers."""
    count = config.integer("mtp_num_hidden_layers", "num_nextn_predict_layers", default=0)
    full = [
        one for one in layers if isinstance(one, Latent) or (isinstance(one, Attention) and not one.window)
    ]
    return (full[0],) * count if full else ()


def _named_type(config: Fields) -> str:
    return config.text("dtype", "torch_dtype", default="")


def _dtype_bytes(config: Fields) -> int:
    named = _named_type(config) or "float32"
    if named not in _TYPES:
        raise config.missing("dtype", f"is {named!r}, and one of {', '.join(_TYPES)} is needed")
    return _TYPES[named]


def _tied(whole: Fields, text: Fields, model_type: str) -> bool:
    """Whether the output layer is the embedding: where nothing says so, as the class has it."""
    default = defaults.ties_embeddings(model_type)
    if default is None:
        default = model_type in _TIED or model_type.startswith(_TIED_BEGINNINGS)
    place = text if text.has("tie_word_embeddings") else whole
    return place.flag("tie_word_embeddings", default=default)
