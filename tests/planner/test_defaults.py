"""What a config.json leaves out is what the class that vLLM takes would hold."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.planner import config
from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Attention, Shape
from tests.planner import answers
from tests.planner.configs import CONFIGS

TABLE: dict[str, dict[str, Any]] = tomllib.loads(answers.DEFAULTS.read_text(encoding="utf-8"))


def text_of(values: dict[str, Any]) -> dict[str, Any]:
    """The part of a config that the text model's class reads."""
    found: dict[str, Any] = values.get("text_config", values)
    return found


def held(values: dict[str, Any]) -> dict[str, Any]:
    """What that class holds."""
    kind = text_of(values).get("model_type") or values["model_type"]
    return TABLE.get(kind) or TABLE[f"{kind}_text"]


def read(values: dict[str, Any]) -> Shape | str:
    """The shape, or in which words it is refused."""
    try:
        return config.read(values, "x")
    except PlanProblem as problem:
        return str(problem)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_field_left_out_is_the_classs(name: str) -> None:
    """Each that has a default: the same shape, or refusal, as with the default said."""
    size = () if "text_config" in CONFIGS[name] else ("hidden_size", "num_hidden_layers", "vocab_size")
    for field, value in held(CONFIGS[name]).items():
        if field not in text_of(CONFIGS[name]) or field in (*size, "num_attention_heads"):
            continue
        absent, said = copy.deepcopy(CONFIGS[name]), copy.deepcopy(CONFIGS[name])
        del text_of(absent)[field]
        text_of(said)[field] = value
        assert read(absent) == read(said), field


def test_every_known_kind_has_a_class() -> None:
    """Of its own, or that of its text model."""
    assert not {kind for kind in config.KNOWN if kind not in TABLE and f"{kind}_text" not in TABLE}


def test_null_is_said() -> None:
    """Mistral's window is 4,096 where nothing is said, and none where null is."""
    plain = CONFIGS["mistral-null"]
    assert config.read(plain, "x").layers[0] == Attention(8, 128, 128)
    own = {name: value for name, value in plain.items() if name != "sliding_window"}
    assert config.read(own, "x").layers[0] == Attention(8, 128, 128, window=4096)


def test_a_text_part_need_not_say_its_size() -> None:
    """As in LLaVA's configs, of which the language model's class is known and little else."""
    whole = {"model_type": "llava", "dtype": "bfloat16", "text_config": {"model_type": "llama"}}
    found = config.read(whole, "x")
    assert (len(found.layers), found.hidden, found.vocabulary, found.max_model_len) == (
        32,
        4096,
        32_000,
        2048,
    )
    with pytest.raises(PlanProblem, match="num_attention_heads is missing"):
        config.read({"model_type": "llama", "dtype": "bfloat16"}, "x")


@pytest.mark.parametrize(
    ("name", "field", "other"),
    [
        ("qwen3-moe", "num_experts", "num_local_experts"),
        ("mixtral", "num_local_experts", "num_experts"),
        ("nemotron-h", "n_groups", "mamba_n_groups"),
        ("nemotron-h", "conv_kernel", "mamba_d_conv"),
        ("gpt2", "n_positions", "max_position_embeddings"),
    ],
)
def test_is_whichever_name_it_has(name: str, field: str, other: str) -> None:
    """The default of one name does not stand beside what is said under the other."""
    renamed = dict(CONFIGS[name])
    renamed[other] = renamed.pop(field)
    assert config.read(renamed, "x") == config.read(CONFIGS[name], "x")


def test_embeddings_are_tied_as_the_class_has_it() -> None:
    """Where neither the text part nor the whole says it; what the whole says is heard."""
    for kind, tied in (
        ("bare-gemma2", True),
        ("bare-mamba", True),
        ("bare-mamba2", False),
        ("bare-llama", False),
    ):
        assert config.read(CONFIGS[kind], kind).parameters.tied is tied
    apart = {**CONFIGS["gemma3-4b"], "tie_word_embeddings": False}
    assert config.read(CONFIGS["gemma3-4b"], "x").parameters.tied
    assert not config.read(apart, "x").parameters.tied


@pytest.mark.long
def test_the_table_is_what_the_classes_hold(tmp_path: Path) -> None:
    """Of the vLLM that is installed; after an upgrade `python -m tests.planner.record` writes it anew."""
    assert answers.ask_defaults(tmp_path) == TABLE
