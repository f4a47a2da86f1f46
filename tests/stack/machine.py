"""What the machine must be for a Docker engine of the tests, and that engine from its start to its end."""

import os
import platform
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.local import locks
from tests.stack import debian, remains
from tests.stack import engine as docker_engine
from tests.stack.engine import Engine

RELEASE = "bookworm"
NEEDED_MEMORY = 8 * 2**30


def why_not() -> str:
    """Why the stack cannot be started on this machine; empty if it can."""
    if platform.system() != "Linux" or debian.codename() != RELEASE:
        return "needs Debian 12, whose packages the Docker engine and the images are made of"
    if sys.version_info[:2] != (3, 11):
        return "needs Python 3.11, Debian 12's: vLLM's image has the packages of the local mode's engine"
    if os.geteuid() != 0:
        return "needs root, for a Docker engine of its own"
    if not _may_administer():
        return "needs the rights to mount and to make networks, which containers seldom have"
    if _available_memory() < NEEDED_MEMORY:
        return f"needs {NEEDED_MEMORY // 2**30} GiB of available memory"
    if remains.other_engine():
        return "a Docker engine runs here, whose firewall rules another one would take away"
    return ""


def _available_memory() -> int:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


def _may_administer() -> bool:
    """capabilities(7): CAP_NET_ADMIN is 12, CAP_SYS_ADMIN 21."""
    held = docker_engine.held_capabilities()
    return bool(held >> 12 & 1 and held >> 21 & 1)


@asynccontextmanager
async def docker() -> AsyncIterator[Engine]:
    """A running Docker engine without containers, for one process at a time. Raises AptFailure."""
    with locks.held(docker_engine.cache() / "engine", "testing the compose stack"):
        programs = docker_engine.install()
        remains.sweep()
        remains.note()
        engine = Engine(programs)
        try:
            await engine.start()
            await engine.empty()
            yield engine
            await engine.empty()
            await engine.stop()
        finally:
            engine.kill()
            remains.sweep()
