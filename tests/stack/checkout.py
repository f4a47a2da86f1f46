"""A copy of what an operator has: the files that the stack is made of, and a model beside them."""

import re
import shutil
from pathlib import Path

from deploy.local import models

CHECKOUT = Path(__file__).parents[2]
# All that compose.yaml mounts and the gateway's image is built from, and the code behind `make up`.
PARTS = (
    *("compose.yaml", "Caddyfile", ".dockerignore", "deploy", "grafana", "gateway"),
    *("pyproject.toml", "requirements.lock", "README.md", "LICENSE"),
)
PROFILE = "cpu"
PROFILE_FILE = f"deploy/profiles/{PROFILE}.yaml"


def copy(target: Path) -> Path:
    """A new folder with them: whatever the tests write there, this checkout's own .env and secrets/ stay."""
    target.mkdir()
    for part in PARTS:
        source = CHECKOUT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / part)
    return target


def weights(target: Path) -> Path:
    """A Hugging Face cache that holds the model of the profile, as an operator's own may.

    Raises Problem if the model cannot be had. Needs the local mode's engine installed.
    """
    profile = (CHECKOUT / PROFILE_FILE).read_text()
    named = dict(re.findall(r"(?m)^(model|revision): (\S+)$", profile))
    repository = target / "hub" / f"models--{named['model'].replace('/', '--')}"
    snapshot = repository / "snapshots" / named["revision"]
    snapshot.mkdir(parents=True)
    for file in models.smollm2().folder.iterdir():
        # Copied and readable: the file in the cache is its owner's alone, and vLLM is another user.
        shutil.copyfile(file, snapshot / file.name)
        (snapshot / file.name).chmod(0o644)
    return target
