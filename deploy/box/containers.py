"""The stack's containers as Docker sees them, found by Compose's labels: no file is read for it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deploy.box import docker
from deploy.box.places import Places

LABEL = "com.docker.compose"


@dataclass(frozen=True)
class Container:
    """One container. `health` is empty where the image has no check; times are as Docker writes them."""

    id: str
    service: str
    image: str
    image_id: str
    state: str
    health: str
    exit_code: int
    restarts: int
    started: str
    folder: str
    config_hash: str
    ports: frozenset[int]

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self.state == "running"

    @property
    def well(self) -> bool:
        """Whether it runs and its check, if it has one, succeeds."""
        return self.running and self.health in {"", "healthy"}


def of_project(places: Places, project: str) -> dict[str, Container]:
    """The services' containers, stopped ones too, by service. Raises Problem if Docker does not answer."""
    ids = docker.answer(
        places, "ps", "-aq", "--no-trunc", "--filter", f"label={LABEL}.project={project}"
    ).split()
    if not ids:
        return {}
    # One that is removed between the two questions is no failure: the others are told all the same.
    told = docker.tried(places, "inspect", "--type", "container", *ids)
    found = [_container(item) for item in json.loads(told.out or "[]") if _is_service(item)]
    return {container.service: container for container in sorted(found, key=lambda one: one.service)}


def _is_service(item: Mapping[str, Any]) -> bool:
    labels = item["Config"].get("Labels") or {}
    return str(labels.get(f"{LABEL}.oneoff", "False")) != "True"


def _container(item: Mapping[str, Any]) -> Container:
    state, labels = item["State"], item["Config"]["Labels"]
    return Container(
        id=item["Id"],
        service=labels[f"{LABEL}.service"],
        image=item["Config"]["Image"],
        image_id=item["Image"],
        state=state["Status"],
        health=(state.get("Health") or {}).get("Status", "").replace("none", ""),
        exit_code=state["ExitCode"],
        restarts=item.get("RestartCount", 0),
        started=state.get("StartedAt", ""),
        folder=labels.get(f"{LABEL}.project.working_dir", ""),
        config_hash=labels.get(f"{LABEL}.config-hash", ""),
        ports=frozenset(_published(item)),
    )


def _published(item: Mapping[str, Any]) -> list[int]:
    bound = (item.get("NetworkSettings") or {}).get("Ports") or {}
    return [int(one["HostPort"]) for all_of_it in bound.values() for one in all_of_it or []]
