"""Each form of config.json is read, and one that cannot be says which field is missing, in which file."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.planner import config
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Latent, State
from tests.planner.configs import CONFIGS

Change = Callable[[dict[str, Any]], None]


def changed(name: str, change: Change) -> dict[str, Any]:
    """A config with something changed in its text part."""
    found = copy.deepcopy(CONFIGS[name])
    change(found.get("text_config", found))
    return found


def without(*names: str) -> Change:
    """Takes fields out."""

    def change(text: dict[str, Any]) -> None:
        for name in names:
            del text[name]

    return change


def having(**fields: Any) -> Change:
    """Sets fields."""
    return lambda text: text.update(fields)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("llama-gqa", "num_hidden_layers"),
        ("llama-gqa", "num_attention_heads"),
        ("llama-gqa", "hidden_size"),
        ("llama-gqa", "vocab_size"),
        ("llama-gqa", "model_type"),
        ("gemma3", "num_hidden_layers"),
        ("nemotron-h", "hybrid_override_pattern"),
        ("nemotron-h", "hidden_size"),
        ("falcon-h1", "vocab_size"),
        ("deepseek-v2-lite", "num_experts_per_tok"),
        ("mamba2", "hidden_size"),
    ],
)
def test_a_missing_field_is_named(name: str, field: str) -> None:
    """With the file in which it is missing: a model's size, and what no class makes up."""
    with pytest.raises(PlanProblem, match=rf"somewhere/config\.json: .*{field}"):
        config.read(changed(name, without(field)), "somewhere/config.json")


def test_a_kind_without_a_known_class_has_to_say_all() -> None:
    """Nothing is made up of it."""
    strange = changed("llama-gqa", having(model_type="brandnew", sliding_window=7))
    for change, field in (
        (without("max_position_embeddings"), "max_position_embeddings"),
        (having(layer_types=["sliding_attention"] * 32, sliding_window="x"), "sliding_window"),
        (having(layer_types=["chunked_attention"] * 32), "attention_chunk_size"),
        (having(num_experts=8), "num_experts_per_tok"),
    ):
        one = copy.deepcopy(strange)
        change(one)
        with pytest.raises(PlanProblem, match=rf"somewhere/config\.json: .*{field}"):
            config.read(one, "somewhere/config.json")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("llama-gqa", having(num_hidden_layers="many"), "num_hidden_layers is 'many'"),
        ("llama-gqa", having(num_hidden_layers=0), "num_hidden_layers is 0"),
        ("llama-gqa", having(num_hidden_layers=True), "num_hidden_layers is True"),
        ("llama-gqa", having(hidden_size=1.5), "hidden_size is 1.5"),
        ("llama-gqa", having(dtype="int3"), "dtype is 'int3'"),
        ("llama-gqa", having(layer_types="full"), "layer_types is no list"),
        ("llama-gqa", having(layer_types=["full_attention"]), "1 entries for 32 layers"),
        ("llama-gqa", having(layer_types=["strange"] * 32), "has strange"),
        ("llama-gqa", having(quantization_config={"quant_method": "magic"}), "quant_method is 'magic'"),
        ("llama-gqa", having(quantization_config=[]), "quantization_config is no object"),
        ("llama-gqa", having(model_type="bert"), "'bert': an encoder"),
        ("qwen3.5-35b", having(mamba_ssm_dtype="tiny"), "mamba_ssm_dtype is 'tiny'"),
    ],
)
def test_a_wrong_field_is_named(name: str, change: Change, said: str) -> None:
    """With what it holds and what it should."""
    with pytest.raises(PlanProblem, match=said):
        config.read(changed(name, change), "config.json")


@pytest.mark.parametrize("text", ["[]", "7", "{", '"model"'])
def test_what_is_no_config_is_refused(tmp_path: Path, text: str) -> None:
    """Also a file that is not JSON at all."""
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(PlanProblem, match=r"config\.json"):
        config.load(tmp_path)


def test_torch_dtype_is_dtype() -> None:
    """The older name, at the top or in the text part; float32 is what vLLM makes of it."""
    plain = config.read(CONFIGS["llama-gqa"], "x")
    for change in (
        having(torch_dtype="bfloat16"),
        having(torch_dtype="float32"),
        having(torch_dtype="float16"),
    ):
        renamed = changed("llama-gqa", without("dtype"))
        change(renamed)
        assert config.read(renamed, "x") == plain


def test_multimodal_configs_hold_a_text_part() -> None:
    """The same layers as the text model alone, and vision is noticed."""
    text = CONFIGS["gemma3"]
    whole = {"model_type": "gemma3", "dtype": "bfloat16", "vision_config": {}, "text_config": text}
    found = config.read(whole, "x")
    assert found.layers == config.read(text, "x").layers
    assert found.vision
    assert not config.read(text, "x").vision


def test_a_dead_window_is_dead() -> None:
    """Qwen's `use_sliding_window: false`; switched on for some layers, vLLM refuses it and so does a plan."""
    dead = config.read(CONFIGS["qwen3-dead-window"], "x")
    assert {layer.window for layer in dead.layers if isinstance(layer, Attention)} == {None}
    live = changed("qwen3-dead-window", having(use_sliding_window=True, max_window_layers=28))
    with pytest.raises(PlanProblem, match="max_window_layers is 28 of 36 layers"):
        config.read(live, "x")


def test_the_two_forms_of_gemma_4_are_one() -> None:
    """Layers by `per_layer_config`, as transformers 5.19 saves it, and by `global_head_dim`."""
    by_layer = config.read(CONFIGS["gemma4-12b-by-layer"], "x")
    change = without("per_layer_config")
    plain = changed("gemma4-12b-by-layer", change)
    plain |= {"global_head_dim": 512, "num_global_key_value_heads": 1, "attention_k_eq_v": True}
    assert config.read(plain, "x").layers == by_layer.layers
    assert by_layer.layers[5] == Attention(1, 512, 512)


def test_images_that_see_both_ways_leave_the_window_alone() -> None:
    """Gemma 4 says "vision" where text stays causal."""
    plain = config.read(CONFIGS["gemma4-26b"], "x")
    assert config.read(changed("gemma4-26b", having(use_bidirectional_attention="vision")), "x") == plain


def test_the_two_forms_of_nemotron_are_one() -> None:
    """Letters, and the list in which "linear_attention" means Mamba2."""
    letters = CONFIGS["nemotron-h"]
    words = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}
    listed = changed("nemotron-h", without("hybrid_override_pattern"))
    listed["layers_block_type"] = [words[letter] for letter in letters["hybrid_override_pattern"]]
    assert config.read(listed, "x").layers == config.read(letters, "x").layers


def test_kinds_of_layers() -> None:
    """What each kind of model keeps: counts of layers with keys, latents and states."""
    expected = {
        "llama-gqa": (32, 0, 0),
        "gemma4-shared": (20, 0, 0),
        "qwen3.5-35b": (10, 0, 30),
        "falcon-h1": (36, 0, 36),
        "granite-4": (4, 0, 36),
        "deepseek-v2-lite": (0, 27, 0),
        "mamba2": (0, 0, 24),
        "lfm2": (6, 0, 10),
    }
    for name, counts in expected.items():
        layers = config.read(CONFIGS[name], name).layers
        found = tuple(sum(isinstance(one, kind) for one in layers) for kind in (Attention, Latent, State))
        assert found == counts, name


def test_an_unknown_kind_is_read_and_said_to_be_unknown() -> None:
    """As its fields describe it: nothing is refused for a name alone."""
    found = config.read(changed("llama-gqa", having(model_type="brandnew")), "x")
    assert not found.known
    assert len(found.layers) == 32


@pytest.mark.parametrize(
    ("quantization", "method", "expert_bytes", "cache"),
    [
        ({"quant_method": "fp8"}, "fp8", 1.0, "auto"),
        ({"quant_method": "awq", "bits": 4}, "int4", 0.5 + 2.5 / 128, "auto"),
        ({"quant_method": "gptq", "bits": 8}, "int4", 1.0, "auto"),
        ({"quant_method": "mxfp4"}, "mxfp4", 0.5 + 1 / 32, "auto"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8", 1.0, "fp8"),
        ({"quant_method": "modelopt_fp4", "quant_algo": "NVFP4"}, "nvfp4", 0.5625, "auto"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}},
            },
            "int4",
            0.5 + 2.5 / 128,
            "auto",
        ),
    ],
)
def test_quantisation(quantization: dict[str, Any], method: str, expert_bytes: float, cache: str) -> None:
    """Bytes a weight, and a cache that the checkpoint itself asks for."""
    found = config.read(changed("llama-gqa", having(quantization_config=quantization)), "x").quantization
    assert found.expert_bytes == expert_bytes
    assert found.kv_cache_dtype == cache
    if quantization.get("bits") != 8:
        assert found.method == method


def test_every_config_survives_json() -> None:
    """What is read here is what stands in files."""
    for name, one in CONFIGS.items():
        assert config.read(json.loads(json.dumps(one)), name) == config.read(one, name)
