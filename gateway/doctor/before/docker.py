"""Docker, Compose, the GPU in containers: what keeps this user from running them. `make up` asks this too."""

from collections.abc import Iterator

from gateway.doctor.finding import Finding, NotLookedError, Unseen
from gateway.doctor.machine import Machine, spoken

# Engine 25 is the first that knows start_interval. Before 25.0.5 it asked DNS servers outside for containers
# that have only an internal network, as vLLM has: a way out for what must have none (CVE-2024-29018).
OLDEST_ENGINE = (25, 0, 5)
OLDEST_COMPOSE = (2, 20)  # the first that passes it on
ENGINE_PAGE = "https://docs.docker.com/engine/install/"
TOOLKIT_PAGE = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"


def engine(machine: Machine) -> Iterator[Finding]:
    """Whether the daemon is there, answers this user, and is new enough."""
    check, said = "docker", machine.docker_trouble.lower()
    if "not installed" in said:
        yield Finding(check, "error", "Docker is not installed", "no docker in PATH", ENGINE_PAGE)
    elif "permission denied" in said:
        mend = "sudo usermod -aG docker $USER, then log in anew"
        yield Finding(check, "error", "Docker does not let your user in", _short(said), mend)
    elif said:
        title = f"Docker does not run ({_short(said)})"
        yield Finding(check, "error", title, "docker version fails", "sudo systemctl enable --now docker")
    if machine.engine and machine.engine < OLDEST_ENGINE:
        title = (
            f"The Docker Engine is {spoken(machine.engine)} and 25.0.5 or newer is needed "
            "(older ones let the "
            "engine's closed network ask DNS servers outside, CVE-2024-29018)"
        )
        yield Finding(check, "error", title, f"server {spoken(machine.engine)}", ENGINE_PAGE)
    if machine.rootless:
        title = "Docker runs rootless or with userns-remap: containers could not read secrets/"
        mend = "switch it off: docker context use default, and no userns-remap in /etc/docker/daemon.json"
        yield Finding(check, "error", title, "docker info names it under SecurityOptions", mend)
    if not said and machine.engine >= OLDEST_ENGINE and not machine.rootless:
        yield Finding(check, "ok", "Docker runs", f"engine {spoken(machine.engine)}")


def compose(machine: Machine) -> Iterator[Finding]:
    """Whether the Compose plugin is there and new enough."""
    check = "compose"
    if "not installed" in machine.docker_trouble.lower():
        raise NotLookedError(Unseen("Docker is not installed"))
    if not machine.compose:
        mend = (
            "install docker-compose-plugin (sudo apt-get install docker-compose-plugin; Debian trixie: "
            "docker-compose)"
        )
        yield Finding(check, "error", "Docker has no Compose plugin", "docker compose version fails", mend)
    elif machine.compose < OLDEST_COMPOSE:
        title = f"Docker Compose is {spoken(machine.compose)} and 2.20 or newer is needed"
        mend = "upgrade its plugin: sudo apt-get install --only-upgrade docker-compose-plugin"
        yield Finding(check, "error", title, f"version {spoken(machine.compose)}", mend)
    else:
        yield Finding(check, "ok", "Docker Compose", f"version {spoken(machine.compose)}")


def gpu_in_docker(machine: Machine) -> Iterator[Finding]:
    """Whether a container can be given the GPU: by NVIDIA's toolkit, or a CDI specification."""
    check = "gpu-in-docker"
    if not machine.docker:
        raise NotLookedError(Unseen("Docker does not answer, or has no Compose"))
    if machine.gpu_in_docker:
        yield Finding(check, "ok", "Docker can hand out the GPU", "nvidia runtime, hook or CDI specification")
    else:
        mend = (
            f"install NVIDIA's Container Toolkit ({TOOLKIT_PAGE}), then sudo nvidia-ctk runtime configure "
            "--runtime=docker && sudo systemctl restart docker"
        )
        title = "Docker cannot hand out the GPU (it would say: could not select device driver nvidia)"
        yield Finding(check, "error", title, "no nvidia runtime, no hook, no CDI specification", mend)


def _short(text: str) -> str:
    return " ".join(text.split())[:120].rstrip(".")
