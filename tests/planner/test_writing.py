"""`gateway plan --write`: nothing that stood there is lost, and a profile is whole or not there."""

import json
import os
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from gateway.cli import app
from gateway.settings import load
from tests.planner.configs import CONFIGS

PLAN = ("gpt-oss-20b", "--hardware", "rtx5090")


def write(file: Path | str, *argv: str) -> Result:
    """`gateway plan … --write FILE`."""
    return CliRunner().invoke(app, ["plan", *(argv or PLAN), "--write", str(file)])


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket or a device would be renamed away, a pipe waited for; the error names it, and it stays.

    A socket stands for all devices: a real one would be lost to the whole machine if this ever failed.
    """
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for place in ("socket", "pipe", "folder", "loop"):
            result = write(place)
            assert result.exit_code == 1
            assert place in result.stderr
    assert stat.S_ISSOCK(Path("socket").stat().st_mode)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "loop", "pipe", "socket"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    """It stays one, and what it leads to is written, with the rights that it had."""
    real, link = tmp_path / "real.yaml", tmp_path / "mine.yaml"
    real.write_text("mine: true\n")
    real.chmod(0o640)
    link.symlink_to(real.name)
    assert write(link).exit_code == 0
    assert link.is_symlink()
    assert yaml.safe_load(real.read_text())["model"] == "openai/gpt-oss-20b"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert (tmp_path / "real.yaml.before").read_text() == "mine: true\n"


def test_no_copy_is_written_over(tmp_path: Path) -> None:
    """What was written by hand before the first and before the second plan are both there after it."""
    file = tmp_path / "mine.yaml"
    for text in ("first: 1\n", "second: 2\n", "first: 1\n"):
        file.write_text(text)
        assert write(file).exit_code == 0
    assert (tmp_path / "mine.yaml.before").read_text() == "first: 1\n"
    assert (tmp_path / "mine.yaml.before-2").read_text() == "second: 2\n"
    assert len(list(tmp_path.glob("mine.yaml*"))) == 3


def test_without_room_all_is_as_it_was(tmp_path: Path) -> None:
    """A file that cannot be written whole: the old one stays, nothing is left behind, and it is named."""
    file = tmp_path / "mine.yaml"
    assert write(file).exit_code == 0
    (tmp_path / "gateway" / "mine.toml").write_text("# mine\n")
    file.write_text("mine: true\n")
    argv = [sys.executable, "-m", "gateway", "plan", *PLAN, "--write", str(file)]
    small = 'ulimit -f 1; exec "$@"'
    done = subprocess.run(["sh", "-c", small, "sh", *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{file} cannot be written" in done.stderr
    assert file.read_text() == "mine: true\n"
    assert (tmp_path / "gateway" / "mine.toml").read_text() == "# mine\n"
    assert len(list(tmp_path.rglob("*.*"))) == 2


def test_what_does_not_fit_says_why(tmp_path: Path) -> None:
    """The reason, not the first of the risks that such a card has."""
    result = write(tmp_path / "mine.yaml", "llama-3.3-70b-int4", "--hardware", "rtx5090")
    assert "was not written: its weights take 37.0 GiB of 28.3 GiB" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "name", ['na"me', "nu\\ll", "null", "on", "No", "yes", "1e5", "12", "sp ace", "a: b", "#x", "é😀"]
)
def test_a_folder_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Both files say the name as it is, and the engine's the folder's whole path, without a revision."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    monkeypatch.chdir(tmp_path)
    assert write("mine.yaml", name, "--hardware", "h100").exit_code == 0
    flags = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert flags["model"] == str(tmp_path / name)
    assert "revision" not in flags
    [model] = tomllib.loads((tmp_path / "gateway" / "mine.toml").read_text())["models"]
    assert flags["served-model-name"] == model["id"] == name.lower()


@pytest.mark.parametrize("name", ["two\nlines", "a*b", " around ", "del\x7f", "line\u2028"])
def test_the_gateway_takes_the_name(tmp_path: Path, name: str) -> None:
    """What it refuses in an id is left out of it; the folder is still the folder."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    assert write(tmp_path / "mine.yaml", str(tmp_path / name), "--hardware", "h100").exit_code == 0
    flags = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    [model] = load(tmp_path / "gateway" / "mine.toml", {}).settings.models
    assert flags["model"] == str(tmp_path / name)
    assert flags["served-model-name"] == model.id


def test_a_path_that_no_text_can_hold_is_refused(tmp_path: Path) -> None:
    """A folder whose name is not UTF-8: before anything is written."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/lat\xe9in"))
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    result = write(tmp_path / "mine.yaml", str(folder), "--hardware", "h100")
    assert result.exit_code == 1
    assert "not UTF-8" in result.stderr
    assert not (tmp_path / "mine.yaml").exists()
