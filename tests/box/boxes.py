"""A box for the tests: a checkout of its own, with a scripted `docker` and `nvidia-smi` on its PATH."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.box import first_run, secret_files, variables
from deploy.box.places import CHECKOUT, Places

FAKE = Path(__file__).with_name("fake_docker.py")
# What the commands read of a checkout.
PARTS = ("compose.yaml", "Caddyfile", "deploy")
WELL = {"Runtimes": {"nvidia": {}, "runc": {}}, "SecurityOptions": ["name=apparmor"], "CDISpecDirs": []}
SERVICES = ("vllm", "gateway", "prometheus", "alertmanager", "grafana", "node-exporter")
RTX_5090 = "NVIDIA GeForce RTX 5090, 32607, 500, 580.95.05"
# Ports that no system gives away by itself, and networks of no use to any (RFC 2544: for measurements).
GIVEN = {
    "SITE": "box.lan",
    "HTTP_PORT": "19080",
    "HTTPS_PORT": "19443",
    "EDGE_NET": "198.18.80",
    "OPS_NET": "198.18.81",
}
UNRELATED = (
    *variables.MEANING,
    "MODE",
    "MODEL",
    "BACK",
    "FILE",
    "YES",
    "SERVICE",
    "ALERT_URL",
    "HF_TOKEN",
    "SSL_CERT_FILE",
)


class Box:
    """One box. What its docker is and says lies in `docker`, to be changed by a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.docker = folder / "docker"
        self.programs = folder / "bin"
        self.cache = folder / "cache"
        for part in (self.folder, self.docker, self.programs, self.cache):
            part.mkdir(parents=True)
        for name in PARTS:
            source = CHECKOUT / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name)
            else:
                shutil.copy(source, self.folder)
        self._program("docker", f'exec {sys.executable} -S -E {FAKE} "$@"')
        self.has(engine="28.3.0", compose="2.38.2", info={**WELL, "DockerRootDir": str(folder)})
        self.runs()
        # The model is there, so that no test asks this machine for its size on disk.
        self.volume("weights").mkdir(parents=True)
        stack = {"services": {name: {"image": f"image/{name}:1"} for name in SERVICES}}
        stack["services"]["gateway"]["image"] = "vllm-gateway:0.1.0"
        self.say("stack.json", stack)

    @property
    def places(self) -> Places:
        """Where its files are."""
        return Places(self.folder)

    def _program(self, name: str, script: str) -> None:
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def has_gpus(self, *lines: str) -> None:
        """What nvidia-smi lists: name, memory, used memory and driver of each."""
        listed = "\n".join(lines)
        self._program("nvidia-smi", f"cat <<'END'\n{listed}\nEND")

    def has_broken_driver(self) -> None:
        """An nvidia-smi that finds no driver."""
        self._program(
            "nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not reach the driver.'; exit 9"
        )

    def has(self, **machine: Any) -> None:
        """What the daemon is, beside what it was already."""
        file = self.docker / "machine.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        self.say("machine.json", {**known, **machine})

    def say(self, name: str, content: Any) -> None:
        """A file that its docker answers from."""
        (self.docker / name).write_text(json.dumps(content))

    def runs(self, *services: str, folder: Path | None = None, port: int | None = None) -> None:
        """The containers of the stack, well and of now; the gateway publishes a port."""
        self.say("containers.json", [self._container(name, folder or self.folder, port) for name in services])

    def _container(self, name: str, folder: Path, port: int | None) -> dict[str, Any]:
        published = {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]} if port else {}
        labels = {"service": name, "project.working_dir": str(folder), "config-hash": "the-hash"}
        return {
            "Id": f"id-of-{name}",
            "Image": f"sha256:{name}",
            "RestartCount": 0,
            "Config": {
                "Image": "vllm-gateway:0.1.0" if name == "gateway" else f"image/{name}:1",
                "Labels": {f"com.docker.compose.{key}": value for key, value in labels.items()},
            },
            "State": {
                "Status": "running",
                "ExitCode": 0,
                "StartedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f789Z"),
                "Health": {"Status": "healthy"},
            },
            "NetworkSettings": {"Ports": published if name == "gateway" else {}},
        }

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        return self.docker / "volumes" / f"vllm-gateway_{name}"

    def calls(self) -> list[list[str]]:
        """What docker was called with, word by word."""
        file = self.docker / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def environ(self) -> dict[str, str]:
        """What makes programs see this box's docker and GPU, and none of this machine's."""
        return {
            "PATH": f"{self.programs}:{self._tools()}",
            "FAKE_DOCKER": str(self.docker),
            # What a user's checkouts share lies below it, and `make clean CACHE=1` deletes that.
            "XDG_CACHE_HOME": str(self.cache),
        }

    def set_up(self, profile: str = "rtx5090", **given: str) -> dict[str, str]:
        """What a first `make up` writes; the variables."""
        planned = first_run.plan(profile, [], {**GIVEN, **given})
        secret_files.ensure(self.places, planned, "", {})
        variables.write(self.places, planned)
        return planned

    def command(self, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """`python -m deploy.box …` in the checkout, off a terminal."""
        return self.run(["-m", "deploy.box", *argv], environ)

    def on_terminal(self, typed: str, *argv: str) -> str:
        """What `python -m deploy.box …` shows on a terminal where something is typed; SITE is not given."""
        terminal, inner = pty.openpty()
        given = {name: value for name, value in GIVEN.items() if name != "SITE"}
        os.write(terminal, typed.encode())
        shown = b""
        with subprocess.Popen(
            [sys.executable, "-m", "deploy.box", *argv],
            cwd=self.folder, env=self._whole(given), stdin=inner, stdout=inner, stderr=inner,
        ):  # fmt: skip
            os.close(inner)
            # Linux ends reading with an error once nobody has the other end open.
            with contextlib.suppress(OSError):
                while part := os.read(terminal, 4096):
                    shown += part
        os.close(terminal)
        return shown.decode(errors="replace")

    def _whole(self, environ: Mapping[str, str]) -> dict[str, str]:
        base = {name: value for name, value in os.environ.items() if name not in UNRELATED}
        return {**base, **self.environ(), "PYTHONPATH": f"{self.folder}:{CHECKOUT}", **environ}

    def run(self, argv: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """A Python of its own there, with little more on its PATH than the scripted programs."""
        return subprocess.run(
            [sys.executable, *argv],
            cwd=self.folder, env=self._whole(environ), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def _tools(self) -> Path:
        """A folder with `sh` and `cat` alone: this machine's own docker and GPU are not this box's."""
        tools = self.programs.with_name("tools")
        tools.mkdir(exist_ok=True)
        for name in ("sh", "cat"):
            link = tools / name
            if not link.exists():
                link.symlink_to(shutil.which(name) or f"/bin/{name}")
        return tools

    def up(self, **environ: str) -> subprocess.CompletedProcess[str]:
        """`make up`."""
        return self.command("up", **environ)


def clean(box: Box, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`make clean`, with Python's standard library alone."""
    return box.run(["-S", "-m", "deploy.box.clean", *arguments], {})
