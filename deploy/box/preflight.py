"""What stands in the way of starting the stack: looked at before anything is changed, all said at once."""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.box import containers, docker, edited_env, listeners, networks, profiles, secret_files, site
from deploy.box import variables as variables_file
from deploy.box.containers import Container
from deploy.box.machine import Machine
from deploy.box.networks import Used
from deploy.box.places import Places
from deploy.box.profiles import NEEDS
from deploy.local.problem import Problem

# Engine 25 is the first that knows start_interval. Before 25.0.5 it asked DNS servers outside for containers
# that have only an internal network, as vLLM has: a way out for what must have none (CVE-2024-29018).
OLDEST_ENGINE = (25, 0, 5)
OLDEST_COMPOSE = (2, 20)  # the first that passes it on
OLDEST_DRIVER = (580,)  # CUDA 13, which the engine's image is built for
TOOLKIT_PAGE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
ENGINE_PAGE = "https://docs.docker.com/engine/install/"
SPARE_BYTES = 5_000_000_000


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
    if not machine.docker:
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
    said = machine.docker_trouble.lower()
    if "not installed" in said:
        yield f"Docker is not installed: {ENGINE_PAGE}"
    elif "permission denied" in said:
        yield "Docker does not let your user in: sudo usermod -aG docker $USER, then log in anew."
    elif said:
        yield f"Docker does not run ({_short(said)}): sudo systemctl enable --now docker"
    if "not installed" not in said and not machine.compose:
        yield "Docker has no Compose plugin: install docker-compose-plugin (Debian trixie: docker-compose)."
    if machine.compose and machine.compose < OLDEST_COMPOSE:
        yield f"Docker Compose is {_spoken(machine.compose)} and 2.20 or newer is needed: upgrade its plugin."
    if machine.engine and machine.engine < OLDEST_ENGINE:
        yield (
            f"The Docker Engine is {_spoken(machine.engine)} and 25.0.5 or newer is needed (older ones let "
            f"the engine's closed network ask DNS servers outside, CVE-2024-29018): {ENGINE_PAGE}"
        )
    if machine.rootless:
        yield "Docker runs rootless or with userns-remap: containers could not read secrets/. Switch it off."


def _short(text: str) -> str:
    return " ".join(text.split())[:120].rstrip(".")


def _spoken(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _docker(sight: Sight) -> Iterator[str]:
    yield from docker_troubles(sight.machine)


def _gpu(sight: Sight) -> Iterator[str]:
    machine, profile = sight.machine, sight.variables["PROFILE"]
    if profile == profiles.WITHOUT_GPU:
        return
    otherwise = "PROFILE=cpu starts the stack without a GPU."
    if machine.gpu_trouble:
        yield f"The NVIDIA driver does not work ({machine.gpu_trouble}): reinstall it and reboot. {otherwise}"
    elif not machine.gpus:
        yield f"There is no NVIDIA GPU, or no driver (nvidia-smi): install driver 580 or newer. {otherwise}"
    for driver in {gpu.driver for gpu in machine.gpus if gpu.driver < OLDEST_DRIVER}:
        yield f"The NVIDIA driver is {_spoken(driver)} and 580 or newer is needed: upgrade it and reboot."
    if machine.docker and not machine.gpu_in_docker:
        yield (
            "Docker cannot hand out the GPU (it would say: could not select device driver nvidia): install "
            f"NVIDIA's Container Toolkit ({TOOLKIT_PAGE}), then sudo nvidia-ctk runtime configure "
            f"--runtime=docker && sudo systemctl restart docker. {otherwise}"
        )


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
    total, free = profiles.memory(sight.machine, gpu)
    if total < needs.card:
        yield (
            f"The profile {profile} needs a card with {needs.card / 1024:.0f} GiB, and {gpu.name} has "
            f"{total / 1024:.0f}: choose another with PROFILE=name (docs/profiles.md)."
        )
        return
    share = profiles.memory_taken(sight.places, profile)
    if share and free < share * total and not _lives(sight, "vllm"):
        yield (
            f"{gpu.name} has {free / 1024:.1f} GiB free, and the profile {profile} takes "
            f"{share * total / 1024:.1f}: nvidia-smi shows who uses it; stop that, or lower "
            f"gpu-memory-utilization in {_file(sight)}."
        )


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
