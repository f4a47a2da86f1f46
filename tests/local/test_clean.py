"""`make clean` says what it deletes, asks, and leaves the user's cache alone unless told otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.places import CHECKOUT

# What the command may need of us: nothing that is installed.
MODULES = ["__init__.py", "clean.py", "places.py", "session.py", "table.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with data and an environment in it, and a cache folder beside it."""
    folder = tmp_path / "checkout"
    (folder / "deploy" / "local").mkdir(parents=True)
    for name in MODULES:
        shutil.copy(CHECKOUT / "deploy" / "local" / name, folder / "deploy" / "local")
    for made in ("data", ".venv", "gateway"):
        (folder / made).mkdir()
    (tmp_path / "cache" / "vllm-gateway").mkdir(parents=True)
    return folder


def clean(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command there, with Python's standard library alone."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "deploy.local.clean", *arguments],
        cwd=checkout,
        env={**os.environ, "XDG_CACHE_HOME": str(checkout.parent / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_says_and_asks(checkout: Path) -> None:
    """Without an answer it lists what it would delete, with what is lost, and deletes nothing."""
    done = clean(checkout)
    assert done.returncode == 1
    assert f"{checkout}/data  (API keys, usage" in done.stdout
    assert "Nothing was deleted. YES=1" in done.stderr
    assert (checkout / "data").exists()


def test_deletes_what_was_made_here(checkout: Path) -> None:
    """Told not to ask, it deletes what was made in the checkout, not the sources and not the cache."""
    assert clean(checkout, "--yes").returncode == 0
    assert not (checkout / "data").exists()
    assert not (checkout / ".venv").exists()
    assert (checkout / "gateway").exists()
    assert (checkout.parent / "cache" / "vllm-gateway").exists()


def test_cache_when_told(checkout: Path) -> None:
    """Engine and weights go only when they are named."""
    done = clean(checkout, "--yes", "--cache")
    assert "engine and weights of all checkouts" in done.stdout
    assert not (checkout.parent / "cache" / "vllm-gateway").exists()


def test_nothing_there(checkout: Path) -> None:
    """A clean checkout is no mistake."""
    clean(checkout, "--yes")
    done = clean(checkout)
    assert (done.returncode, done.stdout) == (0, "Nothing to delete.\n")
