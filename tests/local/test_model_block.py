"""The part of a settings file that names the engine's model is exchanged, and nothing else."""

import tomllib

import pytest

from deploy.local import model_block
from deploy.local.problem import Problem

URL = "http://127.0.0.1:8000"
BLOCK = (
    f'[[models]]\nid = "new"\naliases = ["default"]\nengines = ["{URL}"]\n\n[models.defaults]\ntop_k = 1\n'
)
HEAD = "# mine\n[policy]\ndefault_max_tokens = 512 # so many\n\n"
OTHER = '[[models]]\nid = "other"\nengines = ["http://127.0.0.1:11434"]\nkind = "openai"\n'
OLD = (
    f'[[models]] # the engine\nid = "old"\naliases = ["default", "gpt-*"]\nengines = ["{URL}"]\n\n'
    '[models.defaults]\nchat_template_kwargs = { enable_thinking = false }\n\n'
    "[models.variants.thinking]\n# a reason\n[models.variants.thinking.defaults]\ntop_k = 2\n"
)  # fmt: skip
TAIL = "\n# limits of all\n[limits.default]\nrpm = 5\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD, TAIL),
        (HEAD, ""),
        ("", "\n" + OTHER + TAIL),
        (HEAD + OTHER + "\n", TAIL),
        ("", "\n# the last words"),
    ],
)
def test_all_else_stays(before: str, after: str) -> None:
    """Byte for byte: comments, other models, what stands before and after; and back again."""
    text = before + OLD + after
    changed = model_block.put(text, URL, BLOCK)
    assert changed == before + BLOCK + after
    assert model_block.of_engine(text, URL) == OLD
    assert model_block.put(changed, URL, OLD) == text
    assert model_block.id_of(changed, URL) == "new"


def test_no_model_yet() -> None:
    """A file without one gets it at its end."""
    assert model_block.put(HEAD, URL, BLOCK) == HEAD + BLOCK


def test_aliases_go_along() -> None:
    """What callers write stays right: the planned block takes the aliases and the address of the old one."""
    planned = BLOCK.replace(URL, "http://vllm:8000")
    [model] = tomllib.loads(model_block.adapted(planned, OLD, URL))["models"]
    assert (model["aliases"], model["engines"]) == (["default", "gpt-*"], [URL])


def test_odd_aliases() -> None:
    """An alias with quotes, or beyond the first 65,536 characters, is written as TOML reads it."""
    odd = 'a"b\\c \U0001f600'
    text = model_block.adapted(BLOCK, "", URL).replace('"default"', """'a"b\\c \U0001f600'""")
    [model] = tomllib.loads(model_block.adapted(BLOCK, text, URL))["models"]
    assert model["aliases"] == [odd]


@pytest.mark.parametrize(("most", "cap"), [(0, 512), (2048, 512), (100, 100)])
def test_cap(most: int, cap: int) -> None:
    """A default cap that the model cannot write comes down, and no other is touched."""
    changed = model_block.put(HEAD + OLD, URL, BLOCK, most_tokens=most)
    assert f"default_max_tokens = {cap} # so many" in changed


@pytest.mark.parametrize(
    "text",
    [
        f'models = [{{ id = "old", engines = ["{URL}"] }}]\n',
        f'[[models]]\nid = "old"\nengines = ["{URL}"]\naliases = [\n[\n"a"]]\n[policy]\nmedia = "data"\n',
    ],
)
def test_what_cannot_be_changed(text: str) -> None:
    """Another way to write it is left alone, and the block to write by hand is said."""
    with pytest.raises(Problem, match="by hand, in the place of the model before") as raised:
        model_block.put(text, URL, BLOCK)
    assert 'id = "new"' in str(raised.value)


def test_not_toml() -> None:
    """A file that is none is named as such."""
    with pytest.raises(Problem, match="not valid TOML"):
        model_block.put("[policy\n", URL, BLOCK)
