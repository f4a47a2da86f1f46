"""Defaults and force of a wrong type are found with their line, where the gateway knows the type."""

import tomllib
from typing import Any

import pytest

from gateway.keys.objects import parameters_problem
from gateway.settings import faults
from gateway.settings.parameters import KINDS
from tests.settings.conftest import Load, Problems

RIGHT = """
temperature = 0
top_p = 0.95
top_k = 20
seed = -1
max_tokens = 5.0
logprobs = true
top_logprobs = 5
parallel_tool_calls = false
reasoning_effort = "low"
response_format = { type = "json_object" }
logit_bias = { 1 = 5 }
stop = "x"
stop_sequences = ["x"]
bad_words = ["x"]
stop_token_ids = [1, 2]
tools = [{ type = "function" }]
chat_template_kwargs = { anything = [1, "a", { b = true }] }
zzz_future = [1]
user = 5
"""
WRONG: list[tuple[str, str]] = [
    ('temperature = "hot"', 'must be a number; it is "hot"'),
    ("temperature = true", "must be a number; it is true"),
    ("top_k = 0.5", "must be a whole number; it is 0.5"),
    ('max_tokens = "100"', 'must be a whole number; it is "100"'),
    ("n = true", "must be a whole number; it is true"),
    ('parallel_tool_calls = "no"', 'must be true or false; it is "no"'),
    ("reasoning_effort = 5", "must be text in quotes; it is 5"),
    ('response_format = "json"', "must be a table, as in"),
    ("reasoning = []", "must be a table, as in"),
    ("stop = 5", "must be text in quotes or a list of it"),
    ("stop = [5]", "must be text in quotes or a list of it"),
    ('stop_token_ids = ["1"]', "must be a list of token ids"),
    ("tools = {}", "must be a list of tables"),
    ('logprobs = "5"', "must be a whole number or true"),
    ("chat_template_kwargs = []", "must be a table"),
    ('chat_template_kwargs = ""', "must be a table"),
]


@pytest.mark.parametrize("layer", ["defaults", "force", "variants.v.defaults"])
def test_what_engines_take_is_taken(settings: Load, layer: str) -> None:
    """Names that nobody knows may hold anything."""
    assert settings(model='[[models]]\nid = "m"\nengines = ["http://x"]\n' + f"[models.{layer}]\n{RIGHT}")


@pytest.mark.parametrize(("text", "expected"), WRONG)
@pytest.mark.parametrize("layer", ["defaults", "force"])
def test_a_wrong_type_is_told_with_its_line(problems: Problems, layer: str, text: str, expected: str) -> None:
    """By the parameter's name, with what it must be."""
    model = f'[[models]]\nid = "m"\nengines = ["http://x"]\n[models.{layer}]\n\n{text}\n'

    [problem] = problems(model=model)

    name = text.partition(" ")[0]
    assert problem.startswith(f"some.toml, line 7: models[0].{layer}.{name} {expected}")


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_a_keys_defaults_are_judged_alike(text: str, expected: str) -> None:
    """What would be refused in the file is refused on the command line and by the admin API."""
    assert expected in str(parameters_problem(tomllib.loads(text)))


@pytest.mark.parametrize("name", KINDS)
def test_null_takes_a_parameter_away(name: str) -> None:
    """In a key's force, where it can be said."""
    assert faults({name: None}) == []


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 2**64])
def test_what_is_no_json_is_told_once(value: Any) -> None:
    """Not also as a wrong type."""
    assert len(faults({"top_k": value})) == 1
