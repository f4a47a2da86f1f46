"""download.py as its container runs it, with the engine's own Python, against a hub of the test."""

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy.local import engine
from deploy.local.problem import Problem
from tests.images.hub import COMMIT, Hub, digest

SCRIPT = Path(__file__).parent.parent.parent / "deploy" / "weights" / "download.py"
SECONDS = 180.0


def engine_python() -> Path:
    """The Python that has huggingface_hub and PyYAML as vLLM's image has them. Skips where it cannot be."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no engine here, whose Python this needs: {problem}")
    return engine.python()


@dataclass
class Download:
    """A cache, a profile and a token, which the runs of one test share."""

    folder: Path
    python: Path
    hub: Hub
    prefix: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.folder / "weights"
        self.home.mkdir()
        self.cache = self.folder / "cache"
        self.cache.mkdir(mode=0o755)
        self.profile = self.folder / "serve.yaml"
        self.token = self.folder / "hf-token"
        self.token.touch()
        self.name("acme/tiny")

    def name(self, model: str, revision: str = COMMIT, more: str = "") -> None:
        """Writes the profile."""
        self.profile.write_text(f"# A profile.\nmodel: {model}\nrevision: {revision}\n{more}")

    @property
    def environ(self) -> dict[str, str]:
        """As compose.yaml gives it, with waits that suit a test."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "WEIGHTS_"))}
        return own | {
            "HF_HOME": str(self.home),
            "HF_TOKEN_PATH": str(self.token),
            "HF_ENDPOINT": self.hub.url,
            "ENGINE_CACHE": str(self.cache),
            "CA_BUNDLE_FILE": str(self.folder / "no-ca.pem"),
            "DO_NOT_TRACK": "1",
            # Their own ten seconds may pass while the machine stands still.
            "HF_HUB_DOWNLOAD_TIMEOUT": "120",
            "HF_HUB_ETAG_TIMEOUT": "120",
            "WEIGHTS_SPARE_BYTES": "0",
            "WEIGHTS_WAIT_SECONDS": "0.1 0.1",
            **self.settings,
        }

    @property
    def argv(self) -> list[str]:
        """The command."""
        return [*self.prefix, str(self.python), str(SCRIPT), str(self.profile)]

    def run(self) -> "Outcome":
        """To the end."""
        done = subprocess.run(
            self.argv,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout + done.stderr)

    def start(self) -> "subprocess.Popen[bytes]":
        """In the background; what it writes is in `said`."""
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(self.argv, env=self.environ, stdin=subprocess.DEVNULL, stderr=log)

    def said(self, text: str) -> str:
        """What it wrote, once this text is in it."""
        deadline = time.monotonic() + SECONDS
        while text not in (so_far := (self.folder / "log").read_text()):
            assert time.monotonic() < deadline, f"not within {SECONDS} s: {text}\n{so_far}"
            time.sleep(0.02)
        return so_far

    def repository(self, model: str = "acme/tiny") -> Path:
        """The model's folder in the cache."""
        return self.home / "hub" / f"models--{model.replace('/', '--')}"

    def part(self, model: str, content: bytes) -> Path:
        """Where a large file lies until it is complete."""
        return self.repository(model) / "blobs" / f"{digest(content)}.incomplete"

    def files(self, model: str = "acme/tiny", commit: str = COMMIT) -> dict[str, bytes]:
        """What vLLM would find: the names of the snapshot, and their content."""
        root = self.repository(model) / "snapshots" / commit
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and what it wrote."""

    code: int
    said: str

    @property
    def last(self) -> str:
        """Its last line."""
        return self.said.splitlines()[-1]
