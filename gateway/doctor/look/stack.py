"""The compose stack as Docker tells it: services with variables filled in, containers, the engine's image."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gateway.doctor import vllm
from gateway.doctor.evidence import Compose, Container, Published, Service
from gateway.doctor.finding import Unseen
from gateway.doctor.look.programs import SILENT, Docker, document
from gateway.doctor.machine import version

LABEL = "com.docker.compose"
CDI, ALL = "nvidia.com/gpu=", "all"
MOST_CARDS = 64  # more are in no machine
NO_CARDS = Unseen("the stack's files do not say which cards the engine gets", "docker compose config")


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
        cards=_cards(said),
    )


def _cards(said: Mapping[str, Any]) -> tuple[int, ...] | Unseen | None:
    """The cards of all that asks for some, together; of names that are no numbers it is not known which."""
    asked = list(_devices(said))
    if not asked:
        return NO_CARDS
    found: set[int] = set()
    for ids, count in asked:
        if count < 0 or ALL in ids:
            return None
        if not all(one.isdecimal() for one in ids):
            return Unseen(
                f"the engine's cards are named, not counted ({', '.join(ids)[:80]})", "nvidia-smi -L"
            )
        found |= set(map(int, ids))
        found |= set(_free(found, min(count, MOST_CARDS)))
    return tuple(sorted(found))


def _free(taken: set[int], count: int) -> list[int]:
    """Docker gives the first ones where only their number is said."""
    return [at for at in range(MOST_CARDS + count) if at not in taken][:count]


def _devices(said: Mapping[str, Any]) -> Iterator[tuple[list[str], int]]:
    """Ids and number of each request for NVIDIA cards: reservations, `gpus`, devices by CDI; -1 is all."""
    reserved = ((said.get("deploy") or {}).get("resources") or {}).get("reservations") or {}
    short = said.get("gpus") or []
    asked = [*(reserved.get("devices") or []), *([{}] if isinstance(short, str) else short)]
    for device in filter(lambda one: isinstance(one, dict), asked):
        ids = [str(one).removeprefix(CDI) for one in device.get("device_ids") or []]
        if {"gpu", "nvidia"} & {*(device.get("capabilities") or ["gpu"]), device.get("driver")}:
            yield ids, 0 if ids else _count(device.get("count"))
    for device in said.get("devices") or []:
        source = str(device.get("source") if isinstance(device, dict) else device)
        if source.startswith(CDI):
            yield [source.removeprefix(CDI)], 0


def _count(said: Any) -> int:
    return int(said) if str(said).isdecimal() else -1  # unset and `all` alike


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


def volume(docker: Docker, name: str) -> Path | Unseen | None:
    """Where it lies, by its daemon's word; None where it was not made yet."""
    done = docker("volume", "inspect", name)
    if done.code == SILENT:
        return Unseen(f"Docker does not answer ({done.last_line})")
    if done.code:
        return None
    try:
        [told] = json.loads(done.out)
        return Path(str(told["Mountpoint"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return Unseen(f"Docker does not say where the volume {name} lies", f"docker volume inspect {name}")


def engine_has(docker: Docker, folder: str) -> bool | Unseen:
    """Whether the running engine's container has a folder."""
    done = docker("compose", "exec", "-T", vllm.SERVICE, "test", "-d", folder)
    return done.code == 0 if done.code in {0, 1} else Unseen(f"docker compose exec fails ({done.last_line})")


def log(docker: Docker, lines: int = 5000) -> str | Unseen:
    """The engine's last lines."""
    done = docker("compose", "logs", "--no-color", "--no-log-prefix", "--tail", str(lines), vllm.SERVICE)
    return Unseen(f"docker compose logs fails ({done.last_line})") if done.code else done.out
