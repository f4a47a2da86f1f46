"""What stands in the way of starting the stack: looked at before anything is changed, all said at once.

Docker, the driver and the card's memory are judged by the judges of `gateway doctor`: one rule for both. What
only a box has (profiles, subnets, SITE, .env) is judged here.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.box import containers, docker, edited_env, networks, profiles, secret_files, site
from deploy.box import variables as variables_file
from deploy.box.containers import Container
from deploy.box.machine import Machine
from deploy.box.networks import Used
from deploy.box.places import Places
from deploy.box.profiles import NEEDS
from deploy.local.problem import Problem
from gateway.doctor.before import docker as docker_judges
from gateway.doctor.before import gpu as gpu_judges
from gateway.doctor.before import memory as memory_judges
from gateway.doctor.finding import Finding, NotLookedError
from gateway.doctor.look import listeners
from gateway.doctor.machine import memory
from gateway.doctor.vllm import SPARE_BYTES


@dataclass(frozen=True)
class Sight:
    """All that is looked at: this machine, what runs of the stack already, whose subnets are whose."""

    places: Places
    machine: Machine
    variables: Mapping[str, str]
    running: Mapping[str, Container]
    used: list[Used]
    engine_there: bool
    weights_there: bool


def look(places: Places, machine: Machine, variables: Mapping[str, str]) -> Sight:
    """What is there for the stack that the variables describe; of Docker nothing if it does not answer."""
    if machine.docker_trouble:
        return Sight(places, machine, variables, {}, [], engine_there=False, weights_there=False)
    project = variables_file.project(variables)
    engine = docker.tried(places, "image", "ls", "-q", "--filter", "reference=vllm/vllm-openai*")
    volume = docker.tried(places, "volume", "inspect", f"{project}_weights")
    return Sight(
        places=places,
        machine=machine,
        variables=variables,
        running=containers.of_project(places, project),
        used=networks.in_use(places, project),
        engine_there=bool(engine.out.strip()),
        weights_there=volume.code == 0,
    )


def check(sight: Sight) -> None:
    """Returns if the stack can be started. Raises Problem with a line for each thing in the way."""
    found = [line for part in PARTS for line in part(sight)]
    if found:
        raise Problem("\n  - ".join(["this stands in the way; nothing was changed:", *found]))


def docker_troubles(machine: Machine) -> Iterator[str]:
    """What keeps this user from running containers here."""
    yield from _lines(docker_judges.engine(machine))
    yield from _lines(docker_judges.compose(machine))


def _lines(found: Iterator[Finding], *, otherwise: str = "") -> Iterator[str]:
    """The errors among findings, each with its mend, on one line."""
    with suppress(NotLookedError):
        for finding in found:
            if finding.severity == "error":
                yield f"{finding.title}: {finding.mend}{otherwise}"


def _docker(sight: Sight) -> Iterator[str]:
    yield from docker_troubles(sight.machine)


def _gpu(sight: Sight) -> Iterator[str]:
    machine = sight.machine
    if sight.variables["PROFILE"] == profiles.WITHOUT_GPU:
        return
    otherwise = ". PROFILE=cpu starts the stack without a GPU."
    yield from _lines(gpu_judges.driver(machine), otherwise=otherwise)
    yield from _lines(docker_judges.gpu_in_docker(machine), otherwise=otherwise)


def _profile(sight: Sight) -> Iterator[str]:
    known, profile = profiles.known(sight.places), sight.variables["PROFILE"]
    if profile and profile not in known:
        yield f"There is no profile {profile}: PROFILE is one of {', '.join(known)}."
    elif not profile and sight.machine.gpus:
        yield (
            f"There is no profile for {sight.machine.gpus[0].name}: choose that of the most similar card "
            f"with PROFILE=name, of {', '.join(known)}, or write your own (docs/profiles.md)."
        )


def _memory(sight: Sight) -> Iterator[str]:
    profile = sight.variables["PROFILE"]
    needs = NEEDS.get(profile)
    if not sight.machine.gpus or needs is None or profile == profiles.WITHOUT_GPU:
        return
    at = profiles.card(sight.machine, profile)
    gpu = sight.machine.gpus[at]
    overlay = sight.places.profiles / "compose" / f"{profile}.yaml"
    if at and not re.search(r"(?m)^[^#\n]*device_ids", overlay.read_text(encoding="utf-8")):
        yield (
            f"{gpu.name} is card {at} here, and containers get the first, {sight.machine.gpus[0].name}: in "
            f'deploy/profiles/compose/{profile}.yaml, write device_ids: ["{at}"] in the place of count: 1.'
        )
    total, free = memory(sight.machine, gpu)
    if total < needs.card:
        yield (
            f"The profile {profile} needs a card with {needs.card / 1024:.0f} GiB, and {gpu.name} has "
            f"{total / 1024:.0f}: choose another with PROFILE=name (docs/profiles.md)."
        )
        return
    share = profiles.memory_taken(sight.places.checkout / sight.variables.get("PROFILE_FILE", ""))
    if share and not _lives(sight, "vllm"):
        found = memory_judges.too_little(gpu, total, free, share, profile, _file(sight))
        yield from _lines(found)


def _file(sight: Sight) -> str:
    return sight.variables.get("PROFILE_FILE", "the profile").removeprefix("./")


def _lives(sight: Sight, service: str) -> bool:
    return service in sight.running and sight.running[service].running


def _ports(sight: Sight) -> Iterator[str]:
    off = not site.names(sight.variables["SITE"])
    names = ("GATEWAY_PORT", "GRAFANA_PORT") if off else ("HTTP_PORT", "HTTPS_PORT")
    usual = {"GATEWAY_PORT": "8080", "GRAFANA_PORT": "3000", "HTTP_PORT": "80", "HTTPS_PORT": "443"}
    ours = {port for container in sight.running.values() if container.running for port in container.ports}
    taken = listeners.listening() - ours
    for name in names:
        port = sight.variables.get(name) or usual[name]
        if not edited_env.is_port(port):
            yield f"{name}={port} is no port: write a number up to 65535."
        elif int(port) in taken:
            yield f"Port {port} is taken (ss -ltnp shows by whom): stop that, or choose another with {name}=…"


def _subnets(sight: Sight) -> Iterator[str]:
    if sight.variables.get("EDGE_NET") == sight.variables.get("OPS_NET"):
        yield "EDGE_NET and OPS_NET are the same: name two subnets that differ."
    for name in ("EDGE_NET", "OPS_NET"):
        prefix = sight.variables.get(name, "")
        try:
            other = networks.taken(prefix, sight.used)
        except Problem as problem:
            yield f"{name}: {problem}"
            continue
        if other:
            taken = f"{name}: {prefix}.0/24 overlaps with {other.subnet} of {other.by}"
            yield f"{taken}: choose another, as in {name}=10.1.2 (once .env is there, in it)."


def _disk(sight: Sight) -> Iterator[str]:
    own = sight.variables.get("WEIGHTS_DIR", "")
    needs = NEEDS.get(sight.variables["PROFILE"])
    # Rough, and not for what is there already: what is fetched is measured exactly when it is fetched.
    images = SPARE_BYTES + (0 if sight.engine_there or needs is None else needs.image_bytes)
    weights = 0 if own or sight.weights_there or needs is None else needs.model_bytes
    if sight.machine.data_root is not None:
        yield from space(sight.machine.data_root, images + weights)
    if own and not Path(own).is_dir():
        yield f"WEIGHTS_DIR={own} is no directory on this host: make it, or leave it empty for a volume."


def space(folder: Path, needed_bytes: int) -> Iterator[str]:
    """Says if the disk that a folder lies on has less free than is needed."""
    # A folder that this user may not look into: the nearest one that is open, on the same disk as a rule.
    there = next(parent for parent in [folder, *folder.parents] if parent.exists())
    free = shutil.disk_usage(there).free
    if free < needed_bytes:
        yield (
            f"The disk of {folder} has {free / 1e9:.0f} GB free, and images and model need "
            f"{needed_bytes / 1e9:.0f}: free some, move Docker's data-root to a larger disk, or keep the "
            "model elsewhere with WEIGHTS_DIR=…"
        )


def _site(sight: Sight) -> Iterator[str]:
    wanted = sight.variables["SITE"]
    if trouble := site.trouble(wanted):
        yield trouble
        return
    files, parts = sight.variables.get("COMPOSE_FILE", ""), sight.variables.get("COMPOSE_PROFILES", "")
    if site.names(wanted) and ("edge" not in parts or "site-off" in files):
        yield "SITE names a host: .env needs COMPOSE_PROFILES=edge, no deploy/site-off.yaml in COMPOSE_FILE."
    if not site.names(wanted) and ("edge" in parts or "site-off" not in files):
        yield "SITE is off: .env needs COMPOSE_PROFILES= (empty), deploy/site-off.yaml in COMPOSE_FILE."
    expected = site.url(sight.variables)
    # With SITE=off an own proxy may show Grafana under whatever address.
    if site.names(wanted) and sight.variables.get("SITE_URL") != expected:
        yield f"SITE_URL does not go with SITE and HTTPS_PORT: in .env, write SITE_URL={expected}"
    if site.on_tailscale(wanted) and not site.TAILSCALE_SOCKET.exists():
        yield f"SITE names a host of Tailscale, and {site.TAILSCALE_SOCKET} is not there: start tailscaled."
    if site.on_tailscale(wanted) and "tailscale" not in files:
        yield "SITE names a host of Tailscale: .env needs deploy/caddy/tailscale.yaml in COMPOSE_FILE."


def _files(sight: Sight) -> Iterator[str]:
    if sight.variables["PROFILE"] not in profiles.known(sight.places):
        return
    named = [*sight.variables.get("COMPOSE_FILE", "").split(":"), sight.variables.get("CA_BUNDLE", "")]
    named += [sight.variables.get(name, "") for name in ("PROFILE_FILE", "GATEWAY_CONFIG_FILE")]
    for name in filter(None, named):
        if not (sight.places.checkout / name).is_file():
            yield f"{name}, which .env names, is no file: mend .env."
    yield from secret_files.troubles(sight.places, sight.variables)


def _others(sight: Sight) -> Iterator[str]:
    for folder in {one.folder for one in sight.running.values() if one.running and one.folder}:
        if Path(folder).resolve() != sight.places.checkout.resolve():
            yield f"The stack of another checkout runs here: make down in {folder} first."


PARTS = (_docker, _gpu, _profile, _memory, _ports, _subnets, _disk, _site, _files, _others)
