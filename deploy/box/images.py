"""The stack's images: which are missing, how they come here, and what keeps the old ones for a way back."""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from deploy.box import docker
from deploy.box.places import Places
from deploy.local.progress import console

GATEWAY = "gateway"
KEPT = "vllm-gateway-before"

# What a build of one's own network needs. Docker leaves those values out of the image's history.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def of_stack(places: Places) -> dict[str, str]:
    """Each service's image, those of the profile `setup` too, as compose files and .env name them."""
    told = docker.answer(places, *docker.with_setup(places), "config", "--format", "json")
    services: dict[str, Any] = json.loads(told)["services"]
    return {name: service["image"] for name, service in services.items()}


def provide(places: Places, *, rebuild: bool = False) -> None:
    """Pulls what is missing and builds the gateway's image, before the operator's eyes. Raises Problem.

    Tags are pinned, so an image that is there is the right one; the gateway's is built from this checkout,
    and only `rebuild` makes it anew.
    """
    wanted = of_stack(places)
    absent = {name for name, image in wanted.items() if not _there(places, image)}
    if pulled := sorted(absent - {GATEWAY}):
        console().print(f"  Pulling the images of {', '.join(pulled)} …")
        docker.show(places, *docker.with_setup(places), "pull", *pulled)
    if rebuild or GATEWAY in absent:
        console().print(f"  Building {wanted[GATEWAY]} …")
        docker.show(places, "compose", "build", *_arguments(os.environ), GATEWAY)


def _there(places: Places, image: str) -> bool:
    return docker.tried(places, "image", "inspect", "--format", "{{.Id}}", image).code == 0


def _arguments(environ: Mapping[str, str]) -> list[str]:
    named = [name for name in PROXIES if environ.get(name)]
    return [word for name in named for word in ("--build-arg", name)]


def keep(places: Places, running: Mapping[str, str]) -> dict[str, str]:
    """Gives the images (id by service) names of their own, so that nothing removes them; those by service."""
    kept = {service: f"{KEPT}:{service}" for service in running}
    for service, image in running.items():
        docker.answer(places, "tag", image, kept[service])
    return kept


def let_go(places: Places, services: Iterable[str]) -> None:
    """Takes those names away again; an image that nobody else names goes with it."""
    for service in services:
        docker.tried(places, "image", "rm", f"{KEPT}:{service}")
