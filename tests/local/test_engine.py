"""How the engine is run, where it is installed, and that what is half made is never used."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from deploy.local import engine, locks, models
from deploy.local.engine import ServedModel
from deploy.local.places import CHECKOUT, cache_folder
from deploy.local.problem import Problem
from deploy.local.processes import outside_environment, run
from deploy.local.progress import Step, step

MODEL = ServedModel("a-model", Path("/weights"))


def test_command() -> None:
    """It serves the model under its id, on loopback alone, and says nothing of itself to callers."""
    argv, environ = engine.command(MODEL, 8123, ["--seed", "1"], {"HOME": "/home/me", "GATEWAY_SECRET": "s"})
    pairs = dict(pairwise(argv))
    assert pairs["--model"] == "/weights"
    assert pairs["--served-model-name"] == "a-model"
    assert (pairs["--host"], pairs["--port"], pairs["--seed"]) == ("127.0.0.1", "8123", "1")
    assert pairs["--fingerprint-mode"] == "none"
    assert "--disable-fastapi-docs" in argv
    assert environ["HF_HUB_OFFLINE"] == environ["VLLM_NO_USAGE_STATS"] == "1"
    assert environ["HOME"] == "/home/me"
    assert "GATEWAY_SECRET" not in environ


def test_memory_is_the_operators_to_choose() -> None:
    """One GiB for the KV cache unless the operator says otherwise."""
    assert engine.settings({})["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert engine.settings({"VLLM_CPU_KVCACHE_SPACE": ""})["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert engine.settings({"VLLM_CPU_KVCACHE_SPACE": "4"})["VLLM_CPU_KVCACHE_SPACE"] == "4"


@pytest.mark.parametrize(
    ("variable", "expected"), [("/big/disk", "/big/disk"), ("relative", "~/.cache"), ("", "~/.cache")]
)
def test_cache_folder(variable: str, expected: str) -> None:
    """XDG_CACHE_HOME moves the cache; what the specification calls invalid is ignored."""
    found = cache_folder({"XDG_CACHE_HOME": variable})
    assert found == Path(expected).expanduser() / "vllm-gateway"


def test_operators_ca_reaches_pip() -> None:
    """A CA that SSL_CERT_FILE alone names is named to pip as well; one named for pip itself stays."""
    assert outside_environment({"SSL_CERT_FILE": "/ca.pem"})["PIP_CERT"] == "/ca.pem"
    assert outside_environment({"SSL_CERT_FILE": "/ca.pem", "PIP_CERT": "/pip.pem"})["PIP_CERT"] == "/pip.pem"
    assert outside_environment({"PYTHONPATH": "/elsewhere", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_failing_program(tmp_path: Path) -> None:
    """A program that fails is told with its last lines and where the rest is."""
    log = tmp_path / "log"
    failing = "print('first'); print('the reason'); raise SystemExit(3)"
    with step("Trying") as progress, pytest.raises(Problem) as found:
        run([sys.executable, "-c", failing], step=progress, log=log)
    assert str(found.value).splitlines() == [
        f"Trying failed. The last lines of {log}:", "    first", "    the reason"
    ]  # fmt: skip


def test_full_disk(tmp_path: Path) -> None:
    """A disk that fills up on the way is told in one line with the mend."""
    full = "raise OSError(28, 'No space left on device')"
    with (
        step("Trying") as progress,
        pytest.raises(Problem, match=r"^Trying: the disk is full\. Free some") as found,
    ):
        run([sys.executable, "-c", full], step=progress, log=tmp_path / "log")
    assert "\n" not in str(found.value)


def test_half_made_weights(tmp_path: Path) -> None:
    """Weights whose making failed are not there, and the next try starts from nothing."""
    folder = tmp_path / "model"

    def fail(target: Path, progress: Step, log: Path) -> None:
        del progress, log
        (target / "half").touch()
        raise Problem("broke off")

    def make(target: Path, progress: Step, log: Path) -> None:
        del progress, log
        (target / "whole").touch()

    with pytest.raises(Problem, match="broke off"):
        models._made_once(folder, "Making", fail)
    assert not folder.exists()
    models._made_once(folder, "Making", make)
    assert [file.name for file in folder.iterdir()] == ["whole"]


def test_made_once(tmp_path: Path) -> None:
    """What is there is not made again."""
    folder = tmp_path / "model"
    folder.mkdir()

    def fail(target: Path, progress: Step, log: Path) -> None:
        raise AssertionError((target, progress, log))

    assert models._made_once(folder, "Making", fail) == folder


def test_two_at_once(tmp_path: Path) -> None:
    """Of two commands that install the same thing, the second waits until the first is done."""
    target = tmp_path / "engine"
    hold = (
        "import sys; from pathlib import Path; from deploy.local import locks\n"
        "with locks.held(Path(sys.argv[1]), 'installing it'):\n"
        "    print('held', flush=True); sys.stdin.read(); Path(sys.argv[1]).touch()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", hold, str(target)],
        cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        second = subprocess.Popen(
            [sys.executable, "-c", hold, str(target)],
            cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with second:
            assert second.stderr is not None
            assert "Waiting for another command that is installing it" in second.stderr.readline()
            assert not target.exists()
            first.stdin.close()
            assert second.communicate()[0] == "held\n"
    assert target.exists()


def test_lock_dies_with_its_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that was killed leaves no lock behind: the next one does not wait."""
    target = tmp_path / "engine"
    die = (
        "import os, sys; from pathlib import Path; from deploy.local import locks\n"
        "with locks.held(Path(sys.argv[1]), 'installing it'): os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", die, str(target)], cwd=CHECKOUT, check=False)
    assert done.returncode == 9
    with locks.held(target, "testing"):
        assert "Waiting" not in capsys.readouterr().err
