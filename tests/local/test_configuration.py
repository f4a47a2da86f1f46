"""The settings file of the local gateway: valid, written once, and left to the operator."""

from pathlib import Path

import pytest

from deploy.local import configuration
from deploy.local.problem import Problem
from gateway.settings import load


def test_the_gateway_accepts_it(tmp_path: Path) -> None:
    """What is written is a valid configuration with the engine, the alias and defaults."""
    file = tmp_path / "gateway.toml"
    configuration.write_if_absent(file, "smollm2-135m", 8765)
    loaded = load(file, {})
    (model,) = loaded.settings.models
    assert loaded.warnings == ()
    assert (model.id, model.aliases, model.engines) == (
        "smollm2-135m",
        ("default",),
        ("http://127.0.0.1:8765",),
    )
    assert loaded.settings.engine.keep_alive_seconds < 120


def test_aliases(tmp_path: Path) -> None:
    """The aliases of a model are read from the file that was written."""
    file = tmp_path / "gateway.toml"
    configuration.write_if_absent(file, "m", 8000)
    assert configuration.aliases(file) == {"m": ["default"]}


def test_never_overwritten(tmp_path: Path) -> None:
    """A file that is there stays as it is."""
    file = tmp_path / "gateway.toml"
    file.write_text("# mine\n")
    configuration.write_if_absent(file, "smollm2-135m", 8000)
    assert file.read_text() == "# mine\n"


def test_only_the_port_moves(tmp_path: Path) -> None:
    """Where the engine's port is taken, its number changes and nothing else does."""
    file = tmp_path / "gateway.toml"
    text = '# mine 8000\n[[models]]\nid = "m"\nengines = ["http://127.0.0.1:{}", "http://127.0.0.1:80001"]\n'
    file.write_text(text.format(8000))
    assert configuration.engine_port(file) == 8000
    configuration.move_engine(file, 8000, 8003)
    assert file.read_text() == text.format(8003)


@pytest.mark.parametrize("text", ["", '[[models]]\nid = "m"\nengines = ["http://gpu.example:8000"]\n'])
def test_no_local_engine(tmp_path: Path, text: str) -> None:
    """A file that names no engine on this machine has no port to move."""
    file = tmp_path / "gateway.toml"
    assert configuration.engine_port(file) is None
    file.write_text(text)
    assert configuration.engine_port(file) is None


def test_broken_file(tmp_path: Path) -> None:
    """A file that is not TOML is named with its mend."""
    file = tmp_path / "gateway.toml"
    file.write_text("[[models]\n")
    with pytest.raises(Problem, match=rf"{file} is not valid TOML: .*Mend it, or remove it"):
        configuration.engine_port(file)
