"""The Makefile says what it can do and what it misses, and what it installs is pinned."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from deploy.local.places import CHECKOUT

INTERNAL = {"python", "stale", "tools"}
LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    "deploy/local/engine-requirements.txt",
    *(f"deploy/local/llamacpp/{name}.txt" for name in ("wheel", "source", "tools")),
]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs make in this checkout."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_every_target() -> None:
    """`make`, without a word, lists all targets that a person may want, each with a line."""
    targets = set(re.findall(r"^\.PHONY: (.+)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    listed = dict(re.findall(r"^  make (\S+) +(\S.*)$", make().stdout, re.MULTILINE))
    assert listed.keys() == targets - INTERNAL
    assert make("help").stdout == make().stdout


def fake_python(folder: Path, fails_on: str) -> str:
    """A Python that fails whatever code holds a word, and succeeds with everything else."""
    file = folder / "python"
    file.write_text(f'#!/bin/sh\ncase "$2" in *{fails_on}*) exit 1 ;; esac\n')
    file.chmod(0o755)
    return f"PYTHON={file}"


@pytest.mark.parametrize(
    ("fails_on", "message"),
    [
        (
            "version_info",
            r"make: Python 3\.11 or newer is needed, and \S+ is older: name another with PYTHON=",
        ),
        ("ensurepip", r"make: \S+ cannot make virtual environments: install its venv module .*python3-venv"),
    ],
)
def test_python_that_will_not_do(tmp_path: Path, fails_on: str, message: str) -> None:
    """A Python that is too old or has no venv module stops everything in one line with the mend."""
    done = make("python", fake_python(tmp_path, fails_on))
    assert done.returncode
    assert re.match(message, done.stderr)


def test_no_python(tmp_path: Path) -> None:
    """Without any Python that will do, the line says which are needed."""
    done = make("python", "PYTHON=")
    assert done.returncode
    assert done.stderr.startswith("make: Python 3.11 to 3.14 is needed, and none was found")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LOCKS)
def test_locks(name: str) -> None:
    """Every requirement is one version with its hashes, and no line names where it comes from."""
    text = (CHECKOUT / name).read_text()
    assert not re.search(r"https?://|file:|--index|--find-links|--extra-index", text)
    requirements = re.findall(r"^[^#\s].*$", text, re.MULTILINE)
    assert requirements
    assert [line for line in requirements if not re.match(r"\S+==\S+ .*\\$", line)] == []


def test_locks_hold_what_is_asked_for() -> None:
    """Each dependency that pyproject.toml names is in a lock."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    asked = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["local"]]
    locked = (CHECKOUT / "requirements.lock").read_text()
    for requirement in asked:
        (name,) = re.findall(r"^[\w-]+", requirement)
        assert re.search(rf"^{name}==", locked, re.MULTILINE), name
