"""The example file and the documentation hold every setting, with its default."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gateway.settings import Model, load
from gateway.settings.environment import CONFIG, settings_paths, variables
from gateway.settings.schema import ENVIRONMENT_ONLY, SECRETS, Settings
from gateway.settings.secret_files import TWINS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "gateway.toml"
PAGE = (ROOT / "docs" / "settings.md").read_text()
OF_FILE = [path for path in settings_paths() if path[0] not in (*ENVIRONMENT_ONLY, "models")]
FREE_OF_DEFAULTS = {"id", "aliases", "engines", "defaults", "force", "variants"}
NO_NAME = "\N{EN DASH}"
MEANING_OF_UNSET = {"engine_model": "the id", "routes": "all"}


def example(*, with_commented: bool) -> dict[str, Any]:
    """The example's values, with those that stand in it as `# name = value` on request."""
    text = EXAMPLE.read_text()
    if with_commented:
        text = re.sub(r"^# (?=[a-z_]+ = (?!$))", "", text, flags=re.MULTILINE)
    return tomllib.loads(text)


def at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values[name] if isinstance(values, dict) else getattr(values, name)
    return values


def test_the_example_is_valid() -> None:
    """As it is, without a warning."""
    assert load(EXAMPLE, {}).warnings == ()


def test_the_example_is_valid_with_all_its_suggestions(tmp_path: Path) -> None:
    """What stands behind a comment sign can be used by taking the sign away."""
    file = tmp_path / "all.toml"
    file.write_text(re.sub(r"^# (?=[a-z_]+ = (?!$))", "", EXAMPLE.read_text(), flags=re.MULTILINE))

    settings = load(file, {}).settings

    assert settings.limits.default.rpm == 60
    assert settings.models[0].routes == ("/v1/chat/completions",)


@pytest.mark.parametrize("path", OF_FILE, ids=".".join)
def test_the_example_holds_every_setting_with_its_default(path: tuple[str, ...]) -> None:
    """A setting without a default is there as a comment."""
    default = at(Settings(), path)

    at(example(with_commented=True), path)

    if default is not None:
        at(example(with_commented=False), path)
        assert at(load(EXAMPLE, {}).settings, path) == default


@pytest.mark.parametrize("name", Model.model_fields)
def test_the_example_holds_every_field_of_a_model(name: str) -> None:
    """Those with a default have it, save the ones that are marked as examples."""
    [written] = example(with_commented=True)["models"]
    default = Model.model_fields[name].get_default(call_default_factory=True)

    assert name in written
    if name not in FREE_OF_DEFAULTS and default is not None:
        assert written[name] == default


def rows() -> Iterator[list[str]]:
    for line in PAGE.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize(("variable", "path"), variables().items())
def test_every_setting_is_documented_with_variable_and_default(variable: str, path: tuple[str, ...]) -> None:
    """One row of a table in docs/settings.md each."""
    [row] = [row for row in rows() if f"`{variable}`" in row[1]]

    assert row[0] == (NO_NAME if path[0] in SECRETS else f"`{'.'.join(path)}`")
    if path[0] != "secret":
        assert row[2] == documented(at(Settings(), path))
    assert row[3]


def documented(default: Any) -> str:
    """A default as the tables write it."""
    if default is None:
        return "unset"
    if isinstance(default, tuple):
        inner = ", ".join(f'"{str(item).removesuffix("/32").removesuffix("/128")}"' for item in default)
        return f"`[{inner}]`"
    if isinstance(default, Path):
        return f"`./{default}`"
    return "`{}`".format(default if default != "" else '""')


@pytest.mark.parametrize("name", Model.model_fields)
def test_every_field_of_a_model_is_documented(name: str) -> None:
    """One row each in the table of [[models]], with its default."""
    [row] = [row for row in rows() if len(row) == 3 and row[0] == f"`{name}`"]
    field = Model.model_fields[name]
    default = field.get_default(call_default_factory=True)

    if field.is_required():
        assert row[1] == "required"
    elif default is None:
        assert row[1] == MEANING_OF_UNSET[name]
    else:
        assert row[1] == f"`{str(default).lower().replace('()', '[]')}`"


@pytest.mark.parametrize("variable", [CONFIG, *TWINS])
def test_variables_that_are_no_settings_are_documented(variable: str) -> None:
    """The file's name and the secrets' twins."""
    assert f"`{variable}`" in PAGE


def test_the_page_documents_nothing_that_does_not_exist() -> None:
    """Every variable and every section that the page names is one."""
    known = {*variables(), CONFIG, *TWINS}
    sections = {name for name, field in Settings.model_fields.items() if _is_section(field.annotation)}

    assert set(re.findall(r"`(GATEWAY_[A-Z_]+)[`=]", PAGE)) <= known
    assert set(re.findall(r"`\[+([a-z]+)[\].]", PAGE)) <= sections | {"models"}


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
