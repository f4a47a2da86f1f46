"""The compose stack as Docker tells it: services with variables filled in, containers, the engine's image."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.doctor.evidence import Compose, Container, Published, Service
from gateway.doctor.finding import Unseen
from gateway.doctor.look.programs import Docker, document
from gateway.doctor.machine import version

LABEL = "com.docker.compose"
ENGINE = "vllm"


def compose(docker: Docker) -> Compose | Unseen:
    """What the compose files come to, those of all its profiles too."""
    done = docker("compose", "config", "--format", "json")
    told = {} if done.code else document(done.out)
    if not told.get("services"):
        return Unseen(f"docker compose config does not answer ({done.last_line})", "docker compose config -q")
    services = {name: _service(name, said) for name, said in told["services"].items()}
    return Compose(str(told.get("name") or "vllm-gateway"), services)


def _service(name: str, said: Mapping[str, Any]) -> Service:
    environment = said.get("environment") or {}
    return Service(
        name=name,
        image=str(said.get("image") or ""),
        environment={key: str(value) for key, value in environment.items() if value is not None},
        published=tuple(_asked_for(said.get("ports") or [])),
        cards=_cards(said.get("deploy") or {}),
    )


def _cards(deploy: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Docker gives the first ones where only their number is said."""
    reserved = (deploy.get("resources") or {}).get("reservations") or {}
    for device in reserved.get("devices") or []:
        if isinstance(device, dict) and "gpu" in (device.get("capabilities") or []):
            ids, count = device.get("device_ids") or [], device.get("count")
            if ids and all(str(one).isdigit() for one in ids):
                return tuple(map(int, ids))
            if str(count).isdigit() and not ids:
                return tuple(range(int(str(count))))
    return None


def _asked_for(ports: list[Any]) -> Iterator[Published]:
    for port in ports:
        if isinstance(port, dict) and str(port.get("published", "")).isdigit():
            yield Published(
                int(port["published"]), int(port.get("target", 0)), str(port.get("host_ip") or "")
            )


def containers(docker: Docker, project: str) -> tuple[Container, ...] | Unseen:
    """The stack's containers, those that have ended too."""
    listed = docker("ps", "-aq", "--no-trunc", "--filter", f"label={LABEL}.project={project}")
    if listed.code:
        return Unseen(f"Docker does not answer ({listed.last_line})")
    if not listed.out.split():
        return Unseen("the stack has no containers", "make up")
    told = docker("inspect", "--type", "container", *listed.out.split())
    try:
        found = json.loads(told.out or "[]")
    except ValueError:
        return Unseen("docker inspect answers no JSON")
    return tuple(_container(item) for item in found if not _is_errand(item))


def _is_errand(item: Mapping[str, Any]) -> bool:
    return str((item["Config"].get("Labels") or {}).get(f"{LABEL}.oneoff", "False")) == "True"


def _container(item: Mapping[str, Any]) -> Container:
    state = item["State"]
    return Container(
        service=(item["Config"].get("Labels") or {}).get(f"{LABEL}.service", ""),
        state=state.get("Status", ""),
        exit_code=state.get("ExitCode", 0),
        restarts=item.get("RestartCount", 0),
        out_of_memory=bool(state.get("OOMKilled")),
        published=tuple(_bound((item.get("NetworkSettings") or {}).get("Ports") or {})),
    )


def _bound(ports: Mapping[str, Any]) -> Iterator[Published]:
    for inner, hosts in ports.items():
        for host in hosts or []:
            yield Published(int(host["HostPort"]), int(inner.partition("/")[0]), host.get("HostIp") or "")


def image_cuda(docker: Docker, image: str) -> tuple[int, ...] | Unseen:
    """The CUDA that an image is built for, as its environment says."""
    done = docker("image", "inspect", "--format", "{{json .Config.Env}}", image)
    if done.code:
        return Unseen(f"the image {image} is not here yet", f"docker pull {image}")
    try:
        said = json.loads(done.out or "[]") or []
    except ValueError:
        said = []
    found = next((line.partition("=")[2] for line in said if str(line).startswith("CUDA_VERSION=")), "")
    return version(found) or Unseen(f"the image {image} does not say which CUDA it has")


def has_image(docker: Docker, image: str) -> bool:
    """Whether it is here already."""
    return bool(image) and docker("image", "inspect", "--format", "{{.Id}}", image).code == 0


def has_volume(docker: Docker, name: str) -> bool:
    """Whether it was made already."""
    return docker("volume", "inspect", name).code == 0


def log(docker: Docker, lines: int = 5000) -> str | Unseen:
    """The engine's last lines."""
    done = docker("compose", "logs", "--no-color", "--no-log-prefix", "--tail", str(lines), ENGINE)
    return Unseen(f"docker compose logs fails ({done.last_line})") if done.code else done.out
