"""The parsers of tools and thinking: by the model, and by names that vLLM knows."""

import ast
from pathlib import Path

import pytest

from deploy.local import engine
from deploy.local.problem import Problem
from gateway.planner import parsers
from gateway.planner.parsers import Parsers


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("qwen3_moe", "Qwen/Qwen3-Coder-30B-A3B-Instruct", Parsers("qwen3_coder")),
        ("qwen3_next", "Qwen/Qwen3-Coder-Next", Parsers("qwen3_coder")),
        ("qwen3_moe", "Qwen/Qwen3-30B-A3B-Instruct-2507", Parsers("hermes")),
        ("qwen3_moe", "Qwen/Qwen3-30B-A3B-Thinking-2507", Parsers("hermes", "qwen3")),
        ("qwen3", "Qwen/Qwen3-8B-AWQ", Parsers("hermes", "qwen3", thinks=True)),
        ("qwen3_next", "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", Parsers("hermes")),
        ("qwen3_next", "Qwen/Qwen3-Next-80B-A3B-Thinking", Parsers("hermes", "qwen3")),
        ("qwen3_5_moe", "Qwen/Qwen3.5-35B-A3B-FP8", Parsers("qwen3_xml", "qwen3", thinks=True)),
        ("glm4_moe", "zai-org/GLM-4.6", Parsers("glm45", "glm45", thinks=True)),
        ("glm4_moe_lite", "zai-org/GLM-4.7-Flash", Parsers("glm47", "glm45", thinks=True)),
        ("llama", "meta-llama/Llama-3.3-70B-Instruct", Parsers("llama3_json")),
        ("llama", "HuggingFaceTB/SmolLM2-135M-Instruct", Parsers("hermes")),
        ("gpt_oss", "openai/gpt-oss-20b", Parsers("openai")),
    ],
)
def test_a_model_has_its_own(kind: str, name: str, expected: Parsers) -> None:
    """The doctor, who knows the name alone, says the same as the planner, however the name is written."""
    assert parsers.of(kind, name) == parsers.of_name(name) == expected
    own = name.partition("/")[2]
    assert parsers.of(kind, f"/models/{own.lower().replace('-', '_')}/") == expected
    cached = f"/hub/models--{name.replace('/', '--')}/snapshots/0b2752"
    assert parsers.of_name(cached) == expected


def test_of_a_name_that_says_nothing() -> None:
    """The type alone tells what it can; without one nothing is known."""
    assert parsers.of("qwen3", "mine") == Parsers("hermes", "qwen3", thinks=True)
    assert parsers.of_name("mine") is None
    assert parsers.of("nobodys", "mine") is None


def test_vllm_has_every_one() -> None:
    """Each name stands in the registries of the vLLM that is used here."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    package = next(Path(engine.python()).parents[1].glob("lib/python*/site-packages/vllm"))
    tools = _registry(package / "tool_parsers" / "__init__.py", "_TOOL_PARSERS_TO_REGISTER")
    reasoning = _registry(package / "reasoning" / "__init__.py", "_REASONING_PARSERS_TO_REGISTER")
    used = [family.parsers for family in parsers._FAMILIES]
    assert {one.tools for one in used} <= tools
    assert {one.reasoning for one in used if one.reasoning} <= reasoning


def _registry(file: Path, name: str) -> set[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{file} has no {name} any more")
