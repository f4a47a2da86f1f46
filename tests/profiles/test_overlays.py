"""What each box adds to compose.yaml: only services that it knows, the card, and pinned images."""

import re
from typing import Any

import pytest

from tests.profiles import files

PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?")
DCGM = ("rtx5090", "rtx3090", "rtx3090-shared")


def services(name: str) -> dict[str, Any]:
    """The services of an overlay."""
    found: dict[str, Any] = files.overlay(name)["services"]
    return found


def devices(service: dict[str, Any]) -> list[dict[str, Any]]:
    """The GPUs that a service reserves."""
    reserved: list[dict[str, Any]] = (
        service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    )
    return reserved


@pytest.mark.parametrize("name", files.NAMES)
def test_only_known_services_and_networks(name: str) -> None:
    """A misspelt service would start a second one beside the one that was meant."""
    stack = files.compose()
    assert files.overlay(name).keys() == {"services"}
    assert services(name).keys() <= stack["services"].keys() | {"gpu-exporter"}
    for service in services(name).values():
        assert set(service.get("networks", ())) <= stack["networks"].keys()
        assert "ports" not in service


@pytest.mark.parametrize("name", files.NAMES)
def test_the_engine_has_its_card(name: str) -> None:
    """One GPU for vLLM where there are GPUs; none, and vLLM's build for CPUs, where there are none."""
    wanted = [] if name == "cpu" else [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert devices(services(name)["vllm"]) == wanted


@pytest.mark.parametrize("name", files.NAMES)
def test_images_are_pinned(name: str) -> None:
    """A version each: no latest, no nightly. `${VLLM_IMAGE:-…}` lets an operator choose another."""
    for service in services(name).values():
        image = re.sub(r"^\$\{VLLM_IMAGE:-(.+)\}$", r"\1", service.get("image", "none:0.0.0"))
        assert PINNED.fullmatch(image), image


def test_one_vllm_everywhere() -> None:
    """The CPU's image has the version of the other, for the engine and for the download."""
    stack = files.compose()["services"]
    for service in ("vllm", "weights"):
        expected = stack[service]["image"].replace("vllm-openai:", "vllm-openai-cpu:")
        assert services("cpu")[service]["image"] == expected


@pytest.mark.parametrize("name", files.NAMES)
def test_the_gpu_is_watched_where_dcgm_knows_it(name: str) -> None:
    """On GeForce cards; it sees all of them, and nobody but Prometheus sees it."""
    exporter = services(name).get("gpu-exporter")
    assert (exporter is not None) is (name in DCGM)
    if exporter is not None:
        assert exporter["networks"] == ["ops"]
        assert exporter["read_only"] is True
        assert exporter["cap_drop"] == ["ALL"]
        assert devices(exporter) == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]


@pytest.mark.parametrize("name", ["spark", "spark-batch", "rtx5090"])
def test_no_deep_gemm_on_small_blackwell(name: str) -> None:
    """vLLM would try kernels that sm_12x lacks."""
    assert services(name)["vllm"]["environment"]["VLLM_USE_DEEP_GEMM"] == "0"
