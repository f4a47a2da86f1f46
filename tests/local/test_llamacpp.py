"""How llama.cpp is installed and run; `tests/openai_engine` calls it."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from deploy.local import llamacpp, locks, preflight
from deploy.local.engine import ServedModel
from deploy.local.llamacpp import source
from deploy.local.places import cache_folder
from deploy.local.problem import Problem
from tests.local.machines import APPLE, ARM, LINUX, MODERN

OLD = replace(LINUX, cpu_flags=MODERN - {"avx2"})


@pytest.fixture
def model(tmp_path: Path) -> ServedModel:
    """A folder with a GGUF file in it."""
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "a.gguf").touch()
    return ServedModel("a-model", folder)


def test_a_folder_for_each_build() -> None:
    """Wheels of other processors, and builds for other processors, do not get into each other's way."""
    older = replace(OLD, cpu_flags=OLD.cpu_flags - {"avx"})
    folders = {llamacpp.folder(machine) for machine in (LINUX, ARM, APPLE, OLD, older)}
    assert len(folders) == 5
    assert {folder.parent for folder in folders} == {cache_folder() / "engines"}
    assert [folder.name for folder in folders if "source" in folder.name] != []


def test_command_of_the_wheel(tmp_path: Path, model: ServedModel) -> None:
    """It serves the model under its id; nothing of the gateway's is in its environment."""
    argv, environ = llamacpp.command(tmp_path, model, 8123, {"HOME": "/home/me", "GATEWAY_SECRET": "s"})
    assert argv[:2] == [str(tmp_path / "bin" / "python"), str(llamacpp.SERVE)]
    assert argv[2:5] == [str(model.folder / "a.gguf"), "a-model", "8123"]
    assert "GATEWAY_SECRET" not in environ


def test_command_of_the_program(tmp_path: Path, model: ServedModel) -> None:
    """A compiled one serves the same, on loopback alone, without a page, and shows nobody's prompts."""
    program = source.server(tmp_path)
    program.parent.mkdir()
    program.touch()
    argv = llamacpp.arguments(tmp_path, model, 8123)
    pairs = dict(pairwise(argv))
    assert argv[0] == str(program)
    assert (pairs["--model"], pairs["--alias"]) == (str(model.folder / "a.gguf"), "a-model")
    assert (pairs["--host"], pairs["--port"]) == ("127.0.0.1", "8123")
    assert {"--no-slots", "--no-ui", "--metrics", "--offline"} <= set(argv)


def test_half_installed(tmp_path: Path) -> None:
    """What was not stamped is not there; nor is one whose Python has gone."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert not llamacpp.installed(tmp_path)
    (tmp_path / llamacpp.STAMP).touch()
    assert llamacpp.installed(tmp_path)
    python.unlink()
    assert not llamacpp.installed(tmp_path)


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it must be compiled and cannot be, one line says why, and how a compiler is had."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        Problem, match=r"needs a CPU with avx2\. .*no C\+\+ compiler.*apt install g\+\+"
    ) as found:
        llamacpp.install(OLD)
    assert "\n" not in str(found.value)
    assert not llamacpp.installed(llamacpp.folder(OLD))


def test_wheel_that_does_not_load(tmp_path: Path) -> None:
    """A library that the wheel needs and the system lacks is named, with the package that has it."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/sh\necho 'ImportError: libgomp.so.1: cannot open shared object file' >&2\nexit 1\n"
    )
    python.chmod(0o755)
    with pytest.raises(Problem, match=r"libgomp\.so\.1.*apt install libgomp1"):
        llamacpp._check_import(tmp_path)


def test_compilers_that_are_left_behind(tmp_path: Path) -> None:
    """What an interrupted build leaves running keeps its lock until it has ended, so that two never meet."""
    target = tmp_path / "out"
    with locks.held(target, "compiling") as lock:
        left = subprocess.Popen(["sleep", "600"], pass_fds=[lock])
    with (tmp_path / ".out.lock").open("w") as again:
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            left.kill()
            left.wait()
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.long
def test_compiled_from_source(tmp_path: Path) -> None:
    """From the source that is pinned, with the tools that are pinned, comes a server that starts.

    In the cache it is kept, under the name of this processor: up to half an hour the first time.
    """
    if not any(map(shutil.which, source.COMPILERS)):
        pytest.skip("no C++ compiler")
    target = source.folder(preflight.look())
    with locks.held(target, "compiling llama.cpp"):
        if not llamacpp.installed(target):
            source.build(target, "As a test.")
            (target / llamacpp.STAMP).touch()
    shown = subprocess.run(
        [source.server(target), "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "version" in shown.stdout + shown.stderr
    assert os.access(source.server(target), os.X_OK)
    assert not target.with_name(target.name + ".build").exists()
