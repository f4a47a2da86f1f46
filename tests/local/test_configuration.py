"""The settings file of the local gateway: valid, written once, and left to the operator."""

from pathlib import Path

import pytest

from deploy.local import configuration
from deploy.local.engine import ServedModel
from deploy.local.engines import Engine
from deploy.local.problem import Problem
from gateway.settings import load

MODEL = ServedModel("smollm2-135m", Path("/weights"))
VLLM = Engine("vllm", "vllm", MODEL, lambda _: [], {}, idle_seconds=120, stop_seconds=10)
LLAMACPP = Engine("llamacpp", "openai", MODEL, lambda _: [], {}, idle_seconds=5, stop_seconds=10)
BOTH = pytest.mark.parametrize("engine", [VLLM, LLAMACPP], ids=lambda engine: engine.name)


@BOTH
def test_the_gateway_accepts_it(tmp_path: Path, engine: Engine) -> None:
    """What is written is a valid configuration with the engine, its kind, the alias and defaults.

    The gateway is the first to close idle connections, and no GPU is blamed for what a CPU computes.
    """
    file = tmp_path / "gateway.toml"
    configuration.write_if_absent(file, engine, 8765)
    loaded = load(file, {})
    (model,) = loaded.settings.models
    assert loaded.warnings == ()
    assert (model.id, model.kind, model.aliases, model.engines) == (
        "smollm2-135m",
        engine.kind,
        ("default",),
        ("http://127.0.0.1:8765",),
    )
    assert loaded.settings.engine.keep_alive_seconds < engine.idle_seconds
    assert loaded.settings.usage.gpu_energy == "off"


@BOTH
def test_another_engine(tmp_path: Path, engine: Engine) -> None:
    """A file that nobody has touched is written anew for another engine, its port kept."""
    file = tmp_path / "gateway.toml"
    configuration.write_if_absent(file, VLLM if engine is LLAMACPP else LLAMACPP, 8003)
    assert configuration.suit(file, engine) == ""
    assert file.read_text() == configuration.text(engine, 8003)


@BOTH
def test_another_engine_behind_an_operators_file(tmp_path: Path, engine: Engine) -> None:
    """A file that the operator has changed stays as it is, and one line says what is left to do."""
    file = tmp_path / "gateway.toml"
    before = configuration.text(VLLM if engine is LLAMACPP else LLAMACPP, 8003) + "# mine\n"
    file.write_text(before)
    said = configuration.suit(file, engine)
    assert f'port 8003, write kind = "{engine.kind}"' in said
    assert "\n" not in said
    assert file.read_text() == before


@pytest.mark.parametrize("mine", ["", '[[models]]\nid = "m"\nengines = ["http://gpu.example:8000"]\n'])
def test_another_engine_that_is_not_used(tmp_path: Path, mine: str) -> None:
    """A file that names no local engine is nobody's mistake, nor is one that was written for this engine."""
    file = tmp_path / "gateway.toml"
    file.write_text(mine)
    assert configuration.suit(file, LLAMACPP) == ""
    file.write_text(configuration.text(VLLM, 8000) + "# mine\n")
    assert configuration.suit(file, VLLM) == ""


def test_aliases(tmp_path: Path) -> None:
    """The aliases of a model are read from the file that was written."""
    file = tmp_path / "gateway.toml"
    configuration.write_if_absent(file, VLLM, 8000)
    assert configuration.aliases(file) == {"smollm2-135m": ["default"]}


def test_never_overwritten(tmp_path: Path) -> None:
    """A file that is there stays as it is."""
    file = tmp_path / "gateway.toml"
    file.write_text("# mine\n")
    configuration.write_if_absent(file, VLLM, 8000)
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
