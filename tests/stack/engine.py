"""A Docker engine for the tests: Debian's, unpacked in the user's cache and run beside what the machine has.

It lives in a process and a mount namespace of its own: when its first process goes, so do containerd, its
shims and all containers, whatever ended it. What stays in the machine even then is swept by `remains`.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local.places import cache_folder
from tests.running import wait_for
from tests.stack import capped_runc, commands, debian
from tests.stack.debian import Apt

SUITE = "trixie"
PACKAGES = ("docker.io", "containerd", "docker-cli", "docker-compose", "docker-buildx", "tini")
# What the engine and the building of images need of the machine itself.
TOOLS = ("runc", "iptables", "iproute2", "mmdebstrap")

# Below /run nothing outlives a restart of the machine, and the paths of sockets stay short.
RUN = Path("/run/vllm-gateway-tests")
CGROUP = "vllm-gateway-tests"

START_SECONDS = 180.0
KEPT_LAYERS = "2GB"
# Over the longest stop_grace_period of compose.yaml.
STOP_SECONDS = 120.0

# `rslave` mounts ask for a shared root. systemd makes it so, and not every machine has systemd.
FIRST_PROCESS = 'mount --make-rshared / && exec tini-static -- dockerd "$@"'


@dataclass(frozen=True)
class Programs:
    """The engine's own programs, all in one folder."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """What makes `docker` be this one and speak to this engine; no file of the user's is touched."""
        folders = [str(self.folder / "usr" / part) for part in ("bin", "sbin")]
        return {
            "PATH": ":".join([*folders, os.environ["PATH"]]),
            "DOCKER_HOST": f"unix://{RUN}/docker.sock",
            "DOCKER_CONFIG": str(self.folder / "config"),
        }


def cache() -> Path:
    """Where programs, packages and images are kept from run to run."""
    return cache_folder() / "docker"


def apt(suite: str) -> Apt:
    """An apt for a suite, to be `set_up` before it can give anything."""
    return Apt(suite, cache() / f"apt-{suite}")


def install() -> Programs:
    """The programs, fetched if they were not. Some 15 seconds the first time. Raises AptFailure."""
    debian.install(*TOOLS)
    folder = cache() / f"engine-{SUITE}"
    if not folder.exists():
        # Made beside and renamed: a folder with the right name is whole.
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        source = apt(SUITE)
        source.set_up()
        source.unpack(PACKAGES, partial)
        (partial / "config").mkdir()
        # Compose and buildx, found here rather than among those of another Docker.
        (partial / "usr/libexec/docker/cli-plugins").rename(partial / "config/cli-plugins")
        partial.rename(folder)
    return Programs(folder)


class Engine:
    """A dockerd with its containerd; `environ` is for commands that speak to it."""

    def __init__(self, programs: Programs) -> None:
        self.environ: Mapping[str, str] = {**os.environ, **programs.environ}
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it and wait until it answers; containers that are to restart do so."""
        # Not through asyncio, which may start it in a thread: the death signal is that of the thread.
        self._process = self._spawn()
        await wait_for(self._answers, START_SECONDS, self.log)

    def _spawn(self) -> subprocess.Popen[bytes]:
        RUN.mkdir(mode=0o700, exist_ok=True)
        # Its own file of settings instead of the machine's.
        (RUN / "daemon.json").write_text(json.dumps({} if may_raise_limits() else _capped()))
        with (RUN / "dockerd.log").open("ab") as log:
            return subprocess.Popen(
                self._argv(), env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _argv(self) -> list[str]:
        return [
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"),
            *("sh", "-c", FIRST_PROCESS, "dockerd"),
            *("--host", self.environ["DOCKER_HOST"], "--config-file", f"{RUN}/daemon.json"),
            *("--data-root", str(cache() / "data"), "--exec-root", f"{RUN}/exec"),
            *("--pidfile", f"{RUN}/dockerd.pid", "--cgroup-parent", f"/{CGROUP}"),
        ]

    async def _answers(self) -> bool:
        assert self._process
        assert self._process.poll() is None, f"dockerd ended:\n{self.log()}"
        try:
            await self.docker("version")
        except commands.CommandFailed:
            return False
        return True

    def log(self) -> str:
        """The end of what dockerd wrote."""
        return (RUN / "dockerd.log").read_text(errors="replace")[-3000:]

    async def stop(self) -> None:
        """Stop it as a service manager does: containers get their time to end."""
        if self._process is None:
            return
        first = self._first_process()
        if first:
            os.kill(first, signal.SIGTERM)
        try:
            await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._process = None

    def _first_process(self) -> int | None:
        """The namespace's process 1, which hands signals on to dockerd; `unshare` itself would just end."""
        assert self._process
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except FileNotFoundError:
            return None
        return int(children[0]) if children else None

    def kill(self) -> None:
        """End it at once, and with it everything that it started."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def docker(self, *arguments: str | Path, folder: Path | None = None, seconds: float = 600) -> str:
        """What `docker …` prints. Raises CommandFailed."""
        return await commands.run(
            ["docker", *arguments], environ=self.environ, folder=folder, seconds=seconds
        )

    async def empty(self) -> None:
        """Remove all containers, networks and volumes, and what of images nobody will ask for again."""
        if containers := (await self.docker("ps", "--all", "--quiet")).split():
            await self.docker("rm", "--force", "--volumes", *containers)
        await self.docker("network", "prune", "--force")
        await self.docker("volume", "prune", "--all", "--force")
        await self.docker("image", "prune", "--force")
        await self.docker("builder", "prune", "--force", "--keep-storage", KEPT_LAYERS)

    async def kill_container(self, name: str) -> None:
        """Kill a container's first process as the kernel would: `docker kill` counts as a wish to stop."""
        pid = (await self.docker("inspect", "--format", "{{.State.Pid}}", name)).strip()
        os.kill(_outside(pid), signal.SIGKILL)


def of_engine(pid: str) -> bool:
    """Whether a process is of the tests' Docker engine, or in one of its containers."""
    process = Path("/proc") / pid
    try:
        return cache() in (process / "exe").readlink().parents or CGROUP in (process / "cgroup").read_text()
    except OSError:  # it has ended
        return False


def may_raise_limits() -> bool:
    """Whether this root holds CAP_SYS_RESOURCE, which is number 24 in capabilities(7)."""
    return bool(held_capabilities() >> 24 & 1)


def held_capabilities() -> int:
    """The effective ones of this process, a bit for each number in capabilities(7)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)


def _capped() -> dict[str, object]:
    runc = RUN / "capped-runc"
    runc.write_text(f'#!/bin/sh\nexec "{sys.executable}" -SE "{capped_runc.__file__}" "$@"\n')
    runc.chmod(0o755)
    return {"default-runtime": "capped", "runtimes": {"capped": {"path": str(runc)}}}


def _outside(pid: str) -> int:
    """The process id, on this machine, of one that the engine knows by that of its own namespace."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ids = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
        if len(ids) == 3 and ids[1] == pid:
            return int(ids[0])
    raise ProcessLookupError(f"no container's process has the id {pid}")
