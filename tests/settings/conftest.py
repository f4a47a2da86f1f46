"""A way to load settings from a text, as an operator's file would be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings import Settings, SettingsError, load

MODEL = '[[models]]\nid = "m"\nengines = ["http://127.0.0.1:8000"]\n'

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No gateway.toml of the checkout is found by accident."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(name="settings")
def _settings(tmp_path: Path) -> Load:
    """Settings of a file's text, a model added, and of variables."""

    def read(text: str = "", *, model: str = MODEL, **environ: str) -> Settings:
        file = tmp_path / "some.toml"
        file.write_text(text + "\n" + model)
        return load(file, environ).settings

    return read


@pytest.fixture(name="problems")
def _problems(tmp_path: Path) -> Problems:
    """The problems of a file's text, without the folder's name; a text that is valid fails the test."""

    def read(text: str = "", *, model: str = MODEL, **environ: str) -> list[str]:
        file = tmp_path / "some.toml"
        file.write_text(text + "\n" + model)
        with pytest.raises(SettingsError) as refused:
            load(file, environ)
        return [problem.replace(f"{tmp_path}/", "") for problem in refused.value.problems]

    return read
