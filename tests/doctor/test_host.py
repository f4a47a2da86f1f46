"""Disk, ports, clock, limits and files of the host: each judge both ways."""

from pathlib import Path

import pytest

from deploy.box.places import Places
from deploy.box.profiles import NEEDS, known
from gateway.doctor.before import clock, disk, files, limits, network
from gateway.doctor.evidence import (
    Clock,
    Compose,
    Configuration,
    Container,
    DataDir,
    Disk,
    Limits,
    Port,
    Published,
    Service,
)
from gateway.doctor.finding import NOT_ASKED, NotLookedError
from gateway.doctor.look import files as looked_files
from tests.doctor.evidence import configuration, only, scrape, severities

FP8 = "Qwen/Qwen3.5-35B-A3B-FP8"


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        (FP8, 36.75),
        ("nvidia/Qwen3.6-35B-A3B-NVFP4", 26.25),
        ("Qwen/Qwen3-8B", 16),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.27),
        ("/models/mine", None),
    ],
)
def test_size_by_name(model: str, gigabytes: float | None) -> None:
    """Parameters times what the name says of their format; active parameters are not counted."""
    found = disk.weight_bytes(model)
    assert (found is None) if gigabytes is None else found == int(gigabytes * 1e9)


@pytest.mark.parametrize("name", known(Places()))
def test_size_of_shipped_profiles(name: str) -> None:
    """The estimate is near what `make up` asks for, never above it by a tenth nor under a half."""
    profile = looked_files.profile(Places().profiles / f"{name}.yaml")
    found = disk.weight_bytes(profile.flags["model"])  # type: ignore[union-attr]
    assert found is not None
    assert NEEDS[name].model_bytes / 2.5 < found < NEEDS[name].model_bytes * 1.2


@pytest.mark.parametrize(
    ("free", "there", "image", "severity"),
    [
        (100e9, False, False, "ok"),
        (60e9, False, False, "error"),
        (60e9, False, True, "ok"),
        (10e9, True, True, "ok"),
        (4e9, True, True, "error"),
    ],
)
def test_disk(free: float, there: bool, image: bool, severity: str) -> None:
    """What is there already needs no room."""
    finding = only(disk.weights(Disk(Path("/var/lib/docker"), int(free), there, FP8, image)))
    assert finding.severity == severity
    assert f"{free / 1e9:.0f} GB free" in finding.evidence


def test_disk_for_a_model_of_unknown_size() -> None:
    """It is said that nothing is known."""
    assert severities(disk.weights(Disk(Path("/"), 10**12, False, "team/secret-model", True))) == ["hint"]


def test_ports() -> None:
    """Free ones and ours are well; another's is named with its owner."""
    free, ours = Port(80, "HTTP_PORT"), Port(443, "HTTPS_PORT", "docker-proxy (pid 7)", ours=True)
    assert severities(network.ports((free, ours))) == ["ok"]
    finding = only(network.ports((free, Port(8080, "GATEWAY_PORT", "nginx (pid 12)"))))
    assert (finding.severity, finding.title) == ("error", "Port 8080 is taken by nginx (pid 12)")
    assert "ss -ltnp 'sport = :8080'" in finding.mend


CADDY = Service("caddy", published=(Published(443, 443),))
LOOPBACK = Service("grafana", published=(Published(3000, 3000, "127.0.0.1"),))
OPEN = Service("vllm", published=(Published(8000, 8000, "192.168.1.5"),))


@pytest.mark.parametrize(
    ("services", "containers", "found"),
    [
        ((CADDY, LOOPBACK), (), []),
        ((CADDY, OPEN), (), ["vllm"]),
        ((CADDY,), (Container("vllm", "running", published=(Published(8000, 8000, "::"),)),), ["vllm"]),
        ((Service("gateway", published=(Published(8081, 8081),)),), (), ["gateway"]),
    ],
)
def test_published_ports(
    services: tuple[Service, ...], containers: tuple[Container, ...], found: list[str]
) -> None:
    """Caddy's may be reached from anywhere, others' from this host; in files and as it runs."""
    compose = Compose("box", {service.name: service for service in services})
    errors = [one for one in network.published(compose, containers) if one.severity == "error"]
    assert [one.title.split()[2] for one in errors] == found
    assert all("127.0.0.1:" in one.mend for one in errors)


@pytest.mark.parametrize(
    ("ahead", "synchronised", "severity"),
    [
        (0.4, None, "ok"),
        (-3.0, True, "ok"),
        (30.0, True, "warning"),
        (-600.0, True, "error"),
        (None, False, "warning"),
        (0.0, False, "warning"),
        (None, True, "ok"),
    ],
)
def test_clock(ahead: float | None, synchronised: bool | None, severity: str) -> None:
    """By another's Date first, then by whether it is kept right."""
    finding = only(clock.skew(Clock(ahead, "https://hub", synchronised)))
    assert finding.severity == severity
    assert ("set-ntp true" in finding.mend) == (severity != "ok")


def test_clock_that_nobody_knows() -> None:
    """A network that fails is no finding."""
    with pytest.raises(NotLookedError):
        list(clock.skew(Clock(None, "https://hub", None)))


@pytest.mark.parametrize(("soft", "severity"), [(1024, "warning"), (65536, "ok")])
def test_open_files_of_a_start(soft: int, severity: str) -> None:
    """A gateway that is started here gets this limit."""
    finding = only(limits.open_files(Limits(soft, 1_048_576, None), NOT_ASKED))
    assert finding.severity == severity
    assert ("ulimit -n 65536" in finding.mend) == (severity != "ok")


@pytest.mark.parametrize(
    ("held", "most", "severity"), [(900, 1024, "error"), (100, 1024, "warning"), (100, 65536, "ok")]
)
def test_open_files_of_what_runs(held: int, most: int, severity: str) -> None:
    """A gateway's own counters stand above this shell's limit."""
    running = scrape({"process_open_fds": held, "process_max_fds": most})
    finding = only(limits.open_files(Limits(65536, 65536, None), running))
    assert finding.severity == severity
    assert severities(limits.open_files(NOT_ASKED, running)) == [severity]


@pytest.mark.parametrize(
    ("left", "severity"), [(None, "ok"), (30_000, "ok"), (800, "warning"), (20, "error")]
)
def test_pids(left: int | None, severity: str) -> None:
    """An engine needs hundreds."""
    assert only(limits.pids(Limits(65536, 65536, left))).severity == severity


@pytest.mark.parametrize(
    ("trouble", "filesystem", "free", "severity", "mend"),
    [
        ("", "ext4", 10**11, "ok", ""),
        ("/data is not writable by this user", "ext4", 10**11, "error", "chown"),
        ("", "nfs4", 10**11, "error", "GATEWAY_DATA_DIR"),
        ("", "ext4", 10**8, "warning", "du -xh"),
    ],
)
def test_data_dir(trouble: str, filesystem: str, free: int, severity: str, mend: str) -> None:
    """Writable, local, with room."""
    finding = only(files.data_dir(DataDir(Path("/data"), trouble, filesystem, free)))
    assert finding.severity == severity
    assert mend in finding.mend


def test_settings(tmp_path: Path) -> None:
    """What `gateway check` refuses is an error with its mend, what it warns of a warning."""
    refused = looked_files.configuration(
        None, {"GATEWAY_PORT": "no", "GATEWAY_UPSTREAM_URL": "http://e:8000"}
    )
    assert severities(files.settings(refused)) == ["error"]
    valid = '[[models]]\nid = "qwen"\nengines = ["http://127.0.0.1:8000"]\n'
    assert severities(files.settings(configuration(tmp_path, valid))) == ["ok"]
    warned = configuration(tmp_path, valid, GATEWAY_UPSTREAM_URL="http://127.0.0.1:8000")
    assert severities(files.settings(warned)) == ["warning"]
    nothing = Configuration(None, ("There is no model to serve: set GATEWAY_UPSTREAM_URL",))
    assert only(files.settings(nothing)).mend.startswith("set GATEWAY_UPSTREAM_URL; then gateway check")
