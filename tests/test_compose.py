"""compose.yaml and what it includes: what Docker gets to see, held against what operators are promised."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
MAIN, MONITORING = ROOT / "compose.yaml", ROOT / "deploy" / "monitoring.yaml"
TWO_SCREENS_LINES = 140
PINNED = re.compile(r"[\w./-]+:v?\d[\w.-]*")
DRAIN_MARGIN_SECONDS = 15


def document(file: Path) -> dict[str, Any]:
    """A compose file as written: variables as they stand, anchors resolved."""
    parsed: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return parsed


SERVICES: dict[str, dict[str, Any]] = {**document(MAIN)["services"], **document(MONITORING)["services"]}


def test_the_main_file_fits_two_screens() -> None:
    """Who wants to know what runs on the box reads it once."""
    lines = MAIN.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= TWO_SCREENS_LINES
    assert max(map(len, lines)) <= 120


def test_both_files_mean_the_same_by_shared_parts() -> None:
    """Anchors do not reach from one file into another, and Compose compares the networks alone."""
    main, monitoring = document(MAIN), document(MONITORING)
    assert main["include"] == ["deploy/monitoring.yaml"]
    for part in ("networks", "x-service", "x-secrets", "x-apart", "x-health"):
        assert main[part] == monitoring[part], part


def test_only_caddy_is_published() -> None:
    """Docker publishes past the host's firewall, so one line too many opens a port to the world."""
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"caddy"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_do_no_more_than_it_must(name: str) -> None:
    """Read-only, without capabilities and new privileges; where one is added, the file says why."""
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service.get("cap_add", ())) <= {"NET_BIND_SERVICE", "SETUID", "SETGID"}
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert service["restart"] == ("no" if name == "weights" else "unless-stopped")


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "weights"])
def test_a_service_says_whether_it_is_well(name: str) -> None:
    """`up --wait` waits for that, and Docker's list shows it."""
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    """A version each: what runs tomorrow is what runs today."""
    image = re.sub(r"\$\{\w+:-([^}]+)\}", r"\1", SERVICES[name]["image"])
    assert PINNED.fullmatch(image), image


def test_the_engine_is_on_a_network_without_a_way_out_alone() -> None:
    """And the operator's listeners are bound to addresses of another one."""
    networks = document(MAIN)["networks"]
    assert networks["engine"] == {"internal": True}
    assert SERVICES["vllm"]["networks"] == ["engine"]
    ops = SERVICES["gateway"]["networks"]["ops"]["ipv4_address"]
    assert SERVICES["gateway"]["environment"]["GATEWAY_OPS_HOST"] == ops
    assert "ops" not in SERVICES["caddy"]["networks"]
    for name in ("prometheus", "alertmanager"):
        address = SERVICES[name]["networks"]["ops"]["ipv4_address"]
        assert any(part.startswith(f"--web.listen-address={address}:") for part in SERVICES[name]["command"])


def test_the_gateway_may_drain() -> None:
    """Docker kills what is not gone by then."""
    gateway = SERVICES["gateway"]
    drain_seconds = int(gateway["environment"]["GATEWAY_SERVER__DRAIN_SECONDS"])
    assert gateway["stop_grace_period"] == f"{drain_seconds + DRAIN_MARGIN_SECONDS}s"


def test_each_secret_is_known_to_whom_it_is_for() -> None:
    """The hub's token to the download alone; the build's roots to nobody who runs on."""
    holders: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for secret in service.get("secrets", ()):
            holders.setdefault(secret, set()).add(name)
    assert holders == {
        "admin-token": {"gateway"},
        "hf-token": {"weights"},
        "ca-bundle": {"weights"},
        "grafana-password": {"grafana"},
        "alertmanager.yml": {"alertmanager"},
        "alert-url": {"alertmanager"},
        "smtp-password": {"alertmanager"},
    }


def test_the_group_of_the_secrets_is_for_those_who_hold_one() -> None:
    """It may be a group of the operator's that opens more than these files."""
    holders = {name for name, service in SERVICES.items() if service.get("secrets")}
    assert {name for name, service in SERVICES.items() if "group_add" in service} == holders


def test_who_is_on_several_networks_keeps_them_apart() -> None:
    """A neighbour on one may otherwise call its address on another: binding to that is not enough."""
    for name, service in SERVICES.items():
        if "ops" in service.get("networks", ()) and len(service["networks"]) > 1 and name != "grafana":
            assert service["sysctls"] == {"net.ipv4.conf.all.arp_ignore": "1"}, name


def test_the_host_is_shown_without_its_sockets() -> None:
    """A socket on a read-only mount takes connections all the same."""
    for service in SERVICES.values():
        if any(str(volume).startswith("/:") for volume in service.get("volumes", ())):
            assert "/host/run" in service["tmpfs"]


def test_the_download_runs_no_code_that_the_engine_could_have_written() -> None:
    """Python looks for modules of its user's below HOME."""
    weights = SERVICES["weights"]
    writable = {volume.split(":")[1] for volume in SERVICES["vllm"]["volumes"] if not volume.endswith(":ro")}
    assert writable == {"/cache"}
    assert not weights["environment"]["HOME"].startswith("/cache")


@pytest.mark.parametrize("file", [MAIN, MONITORING], ids=["main", "monitoring"])
def test_each_volume_says_what_is_lost_without_it(file: Path) -> None:
    """Before somebody runs `docker volume prune`."""
    text = file.read_text(encoding="utf-8")
    for volume in document(file)["volumes"]:
        assert re.search(rf"^  {volume}: # \w+", text, re.MULTILINE), volume
