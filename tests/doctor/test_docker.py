"""Docker, Compose, driver, CUDA: what is missing or old is found with its mend; what is well is told so."""

from typing import Any

import pytest

from gateway.doctor.before import docker, gpu
from gateway.doctor.finding import NotLookedError, Unseen
from tests.doctor.evidence import machine, only, severities

DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
DENIED = "permission denied while trying to connect to the Docker daemon socket"


@pytest.mark.parametrize(
    ("changed", "title", "mend"),
    [
        ({"docker_trouble": "docker is not installed", "engine": ()}, "not installed", "docs.docker.com"),
        ({"docker_trouble": DENIED, "engine": ()}, "does not let your user in", "usermod -aG docker $USER"),
        ({"docker_trouble": DAEMON, "engine": ()}, "does not run", "systemctl enable --now docker"),
        ({"engine": (25, 0, 4)}, "is 25.0.4 and 25.0.5 or newer", "docs.docker.com"),
        ({"rootless": True}, "rootless or with userns-remap", "userns-remap"),
    ],
)
def test_docker_that_will_not_do(changed: dict[str, Any], title: str, mend: str) -> None:
    """Each is one error with something to paste."""
    finding = only(docker.engine(machine(**changed)))
    assert finding.severity == "error"
    assert title in finding.title
    assert mend in finding.mend
    assert finding.evidence


def test_docker_that_will_do() -> None:
    """The oldest that is allowed is well."""
    assert severities(docker.engine(machine(engine=(25, 0, 5)))) == ["ok"]


@pytest.mark.parametrize(
    ("version", "severity"), [((), "error"), ((2, 17, 3), "error"), ((2, 20), "ok"), ((2, 38, 2), "ok")]
)
def test_compose(version: tuple[int, ...], severity: str) -> None:
    """2.20 is the oldest."""
    assert severities(docker.compose(machine(compose=version))) == [severity]


def test_compose_is_not_looked_at_without_docker() -> None:
    """One lack is not told twice."""
    with pytest.raises(NotLookedError, match="not installed"):
        list(docker.compose(machine(docker_trouble="docker is not installed", compose=())))


def test_gpu_in_docker() -> None:
    """A toolkit or CDI, else how to install one."""
    assert severities(docker.gpu_in_docker(machine())) == ["ok"]
    finding = only(docker.gpu_in_docker(machine(gpu_in_docker=False)))
    assert (finding.severity, "nvidia-ctk runtime configure" in finding.mend) == ("error", True)


@pytest.mark.parametrize(
    ("changed", "title"),
    [
        (
            {"gpus": (), "gpu_trouble": "NVIDIA-SMI has failed because it could not"},
            "does not work (NVIDIA-SMI",
        ),
        ({"gpus": ()}, "no NVIDIA GPU, or no driver"),
        (
            {"gpus": (machine().gpus[0].__class__("RTX 3090", 24576, 0, (570, 124, 6)),)},
            "is 570.124.6 and 580",
        ),
    ],
)
def test_driver_that_will_not_do(changed: dict[str, Any], title: str) -> None:
    """Broken, missing, old."""
    finding = only(gpu.driver(machine(**changed)))
    assert finding.severity == "error"
    assert title in finding.title
    assert "580" in finding.mend


def test_driver_that_will_do() -> None:
    """It is named with its card."""
    assert "RTX 5090 (driver 580.95.5)" in only(gpu.driver(machine())).evidence


@pytest.mark.parametrize(
    ("image", "driver", "severity"),
    [
        ((13, 0, 1), (13, 0), "ok"),
        ((12, 9, 1), (13, 0), "ok"),
        ((13, 0, 1), (12, 8), "error"),
        ((12, 9, 1), (12, 8), "hint"),
    ],
)
def test_cuda(image: tuple[int, ...], driver: tuple[int, ...], severity: str) -> None:
    """An older major version cannot, an older minor one may not be able to."""
    finding = only(gpu.cuda(machine(cuda=driver), image))
    assert finding.severity == severity
    assert ("580 or newer" in finding.mend) == (severity == "error")


@pytest.mark.parametrize("changed", [{"gpus": ()}, {"cuda": ()}])
def test_cuda_that_is_not_known(changed: dict[str, Any]) -> None:
    """Nothing is guessed without a card, a driver's word or an image."""
    with pytest.raises(NotLookedError):
        list(gpu.cuda(machine(**changed), (13, 0)))
    with pytest.raises(NotLookedError, match="not here yet"):
        list(gpu.cuda(machine(), Unseen("the image is not here yet")))
