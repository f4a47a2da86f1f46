"""Images under the names and tags that compose.yaml asks for, where none can be pulled: built from packages.

Each carries the hash of what it is made of, and is built anew when that changes. What is in them is said by
`rootfs` and `systems`; Grafana's server is in no package, so its stand-in is none (`grafana_stand_in.py`).
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from deploy.box.images import PROXIES
from deploy.local import authority
from deploy.local import engine as local_engine
from tests.stack import commands, grafana_stand_in, rootfs, systems
from tests.stack.checkout import PROFILE
from tests.stack.engine import Engine, apt, cache

SUITE = "trixie"
LABEL = "made-of"
GATEWAY_DOCKERFILE = "deploy/gateway.Dockerfile"
# Files are made readable for all: a strict umask of this machine's user must not reach into containers.
TAR = 'tar -C "$1" --sort=name --mode=a+rX --xattrs --xattrs-include=security.capability -c .'
IMPORT = f'{TAR} | docker import "${{@:2}}"'
SECONDS = 600.0


@dataclass(frozen=True)
class StandIn:
    """How one image is made: `furnish` fills a folder; `changes` are lines as in a Dockerfile.

    With a `base` the folder is laid over that image, otherwise it is all of it.
    """

    image: str
    suite: str
    furnish: Callable[[Path], None]
    changes: tuple[str, ...]
    ingredients: tuple[str, ...]
    base: str = ""

    @property
    def key(self) -> str:
        """Another one for other ingredients."""
        parts = (self.image, self.suite, self.base, IMPORT, *self.changes, *self.ingredients)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    @property
    def folder(self) -> Path:
        """Where it is put together; on one disk with the local engine, so that files can be linked."""
        return cache() / "work" / self.key

    @property
    def root(self) -> Path:
        """What becomes the image."""
        return self.folder / "root"


def stand_in(image: str, python: str) -> StandIn:
    """How an image is made; `python` is what the gateway's is built on. Fails for an unknown one."""
    repository, _, tag = image.partition(":")
    match repository:
        case systems.VLLM:
            return _vllm(image)
        case systems.PYTHON:
            return _python(image, tag)
        case "grafana/grafana":
            return _grafana(image, python)
        case _ if repository in rootfs.PROGRAMS:
            return _program(image, repository)
    raise AssertionError(f"compose.yaml asks for {image}, and nobody has said what stands in its place")


def _vllm(image: str) -> StandIn:
    def furnish(root: Path) -> None:
        systems.furnish_vllm(root, apt(systems.VLLM_SUITE))

    ingredients = (_text(systems), local_engine.folder().name)
    return StandIn(image, systems.VLLM_SUITE, furnish, systems.VLLM_CHANGES, ingredients)


def _python(image: str, tag: str) -> StandIn:
    version, suite = ".".join(tag.split(".")[:2]), tag.rpartition("-")[2]

    def furnish(root: Path) -> None:
        systems.furnish_python(root, apt(suite), version)

    return StandIn(image, suite, furnish, systems.PYTHON_CHANGES, (_text(systems),))


def _program(image: str, repository: str) -> StandIn:
    def furnish(root: Path) -> None:
        rootfs.furnish(root, repository, apt(SUITE))

    program = rootfs.PROGRAMS[repository]
    caddy = (str(rootfs.CADDY.stat().st_size),) if repository == "caddy" else ()
    return StandIn(image, SUITE, furnish, program.changes, (repr(program), _text(rootfs), *caddy))


def _grafana(image: str, python: str) -> StandIn:
    def furnish(root: Path) -> None:
        rootfs.furnish_grafana(root, apt(SUITE))

    ingredients = (_text(grafana_stand_in), _text(rootfs))
    return StandIn(image, SUITE, furnish, rootfs.GRAFANA_CHANGES, ingredients, base=python)


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text()


async def provide(engine: Engine, checkout: Path) -> list[str]:
    """Build those images that a stack in `checkout` asks for and that are not there yet; their names.

    Two minutes and 3 GB the first time. Raises CommandFailed or AptFailure.
    """
    python = _base_of_gateway(checkout)
    asked_for, built = await _images_of(engine, checkout)
    # `make up` builds what is not there; what is there may be of another checkout.
    await engine.docker("image", "rm", "--force", *built)
    wanted = [stand_in(image, python) for image in sorted({python, *asked_for})]
    missing = [one for one in wanted if not await _there(engine, one)]
    await asyncio.gather(*(asyncio.to_thread(apt(suite).set_up) for suite in {one.suite for one in missing}))
    # vLLM's takes as long as all the others, and the machine may well have two cores.
    large = [one for one in missing if one.suite == systems.VLLM_SUITE]
    others = sorted((one for one in missing if one not in large), key=_after_base)
    await asyncio.gather(_build(engine, large), _build(engine, others))
    return [one.image for one in missing]


def _after_base(one: StandIn) -> bool:
    return bool(one.base)


def _base_of_gateway(checkout: Path) -> str:
    text = (checkout / GATEWAY_DOCKERFILE).read_text()
    [base] = re.findall(r"^ARG PYTHON=(\S+)$", text, re.MULTILINE)
    return str(base)


async def _images_of(engine: Engine, checkout: Path) -> tuple[set[str], set[str]]:
    """The images of all services: those that are pulled, and those that are built from the checkout."""
    told = await commands.run(
        ["docker", "compose", "--profile", "*", "config", "--format", "json"],
        environ=_unset(engine, checkout),
        folder=checkout,
    )
    services: dict[str, Any] = json.loads(told)["services"]
    built = {service["image"] for service in services.values() if "build" in service}
    return {service["image"] for service in services.values()} - built, built


def _unset(engine: Engine, checkout: Path) -> dict[str, str]:
    """An environment for Compose before `make up`: what that will write does not change the images."""
    files = ["compose.yaml", f"deploy/profiles/compose/{PROFILE}.yaml"]
    needed = re.findall(r"\$\{(\w+):?\?", "".join((checkout / file).read_text() for file in files))
    return {**engine.environ, **dict.fromkeys(needed, "/unset"), "COMPOSE_FILE": ":".join(files)}


async def build_gateway(engine: Engine, checkout: Path) -> None:
    """Build the gateway's image as `make up` will, which then finds its layers made. Raises CommandFailed."""
    proxies = [word for name in PROXIES if os.environ.get(name) for word in ("--build-arg", name)]
    await commands.run(
        ["docker", "compose", "build", "--quiet", *proxies, "gateway"],
        environ={**_unset(engine, checkout), "CA_BUNDLE": str(authority.system_roots())},
        folder=checkout,
        seconds=SECONDS,
    )


async def _there(engine: Engine, one: StandIn) -> bool:
    wanted = f'{{{{index .Config.Labels "{LABEL}"}}}}'
    try:
        return (await engine.docker("image", "inspect", "--format", wanted, one.image)).strip() == one.key
    except commands.CommandFailed:
        return False


async def _build(engine: Engine, stand_ins: list[StandIn]) -> None:
    for one in stand_ins:
        shutil.rmtree(one.folder, ignore_errors=True)
        try:
            one.folder.mkdir(parents=True)
            await asyncio.to_thread(one.furnish, one.root)
            await (_lay_over(engine, one) if one.base else _import(engine, one))
        finally:
            shutil.rmtree(one.folder, ignore_errors=True)


async def _import(engine: Engine, one: StandIn) -> None:
    changes = [part for change in _changes(one) for part in ("--change", change)]
    argv = ["bash", "-o", "pipefail", "-c", IMPORT, "import", str(one.root), *changes, "-", one.image]
    await commands.run(argv, environ=engine.environ, seconds=SECONDS)


async def _lay_over(engine: Engine, one: StandIn) -> None:
    dockerfile = one.root / "Dockerfile"
    dockerfile.write_text("\n".join([f"FROM {one.base}", "COPY usr /usr", *_changes(one)]) + "\n")
    await engine.docker("build", "--quiet", "--tag", one.image, one.root, seconds=SECONDS)


def _changes(one: StandIn) -> tuple[str, ...]:
    return (*one.changes, f"LABEL {LABEL}={one.key}")
