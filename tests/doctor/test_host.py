"""Disk, ports, clock, limits and files of the host: each judge both ways."""

from dataclasses import replace
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
from gateway.doctor.finding import NOT_ASKED, NotLookedError, Unseen, seen
from gateway.doctor.look import files as looked_files
from tests.doctor.evidence import configuration, only, scrape, severities

FP8 = "Qwen/Qwen3.5-35B-A3B-FP8"


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        ("someone/gpt-oss-120b-mine", 84),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 218),
        ("someone/New-17B-64E", None),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 92.96),
        ("Qwen/Qwen3-30B-A3B-W4A8", 22.5),
        ("unsloth/Qwen3-8B-bnb-4bit", 6),
        ("cyankiwi/Qwen3.6-27B-8bit", 28.35),
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
    assert (found is None) if gigabytes is None else found == pytest.approx(gigabytes * 1e9)


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
        (60e9, False, False, "warning"),
        (40e9, False, False, "error"),
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


def test_disk_by_the_catalogue() -> None:
    """What is known stands above what a name tells, and is no guess: then it is an error."""
    asked = Disk(Path("/large disk"), int(60e9), there=False, model="openai/gpt-oss-120b", image_there=True)
    guessed, known = (only(disk.weights(one)) for one in (asked, replace(asked, known_bytes=65 * 10**9)))
    assert (guessed.severity, "if its name tells" in guessed.title) == ("warning", True)
    assert (known.severity, "by the catalogue" in known.evidence) == ("error", True)
    assert severities(disk.weights(replace(asked, known_bytes=10**9))) == ["ok"]


HIDDEN = Unseen("whether it lies in the volume cannot be seen")


def test_disk_where_nobody_knows_whether_the_model_is_there() -> None:
    """Room for all of it is well, and says so; else it is not judged, unless the rest has no room either."""
    asked = Disk(Path("/d"), int(50e9), there=HIDDEN, model=FP8, image_there=True)
    finding = only(disk.weights(asked))
    assert (finding.severity, HIDDEN.why in finding.evidence) == ("ok", True)
    for lacking in (replace(asked, free_bytes=int(20e9)), replace(asked, model="team/secret-model")):
        with pytest.raises(NotLookedError, match="cannot be seen"):
            list(disk.weights(lacking))
    assert severities(disk.weights(replace(asked, free_bytes=int(4e9)))) == ["error"]


def test_a_folder_without_a_model() -> None:
    """It is no download that lacks room."""
    missing = Disk(
        Path("/w"), 10**12, there=False, model="/weights/x", image_there=True, local=True, missing="no folder"
    )
    finding = only(disk.weights(missing))
    assert (finding.severity, finding.title) == ("error", "There is no model in /weights/x")


def test_disk_for_a_model_of_unknown_size() -> None:
    """It is said that nothing is known."""
    assert severities(disk.weights(Disk(Path("/"), 10**12, False, "team/secret-model", True))) == ["hint"]


def test_ports() -> None:
    """Free ones and ours are well; another's is named with its owner."""
    free, ours = Port(80, "HTTP_PORT"), Port(443, "HTTPS_PORT", "docker-proxy (pid 7)", ours=True)
    assert severities(network.ports((free, ours))) == ["ok"]
    ops = Port(8081, "GATEWAY_OPS_PORT")
    finding = only(network.ports((free, Port(8080, "GATEWAY_PORT", "nginx (pid 12)"), ops)))
    assert (finding.severity, finding.title) == ("error", "Port 8080 is taken by nginx (pid 12)")
    assert "ss -ltnp 'sport = :8080'" in finding.mend
    assert finding.mend.endswith("GATEWAY_PORT=8082")


def test_ports_of_the_local_mode() -> None:
    """`make up` takes the next free one."""
    finding = only(network.ports((Port(8080, "port of gateway", "nginx (pid 12)", moves=True),)))
    assert (finding.severity, "next free one" in finding.mend) == ("hint", True)


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


def test_mends_of_folders_can_be_pasted() -> None:
    """One that is still to be made cannot be given away; white space is quoted."""
    made = DataDir(Path("/srv/my data"), "/srv is not writable by this user", "ext4", 10**12)
    new = replace(made, there=False)
    file = only(files.data_dir(replace(made, trouble="/srv/my data is no folder")))
    assert file.mend.startswith("move that file away")
    assert only(files.data_dir(made)).mend.startswith("sudo chown -R $(id -u):$(id -g) '/srv/my data' && ")
    assert only(files.data_dir(new)).mend.startswith("sudo install -d -o $(id -u) -g $(id -g) '/srv/my data'")


@pytest.mark.parametrize("there", [False, True])
def test_settings_that_cannot_be_read(tmp_path: Path, there: bool) -> None:
    """A name of nothing, a folder: the title says so, and the mend is something to do."""
    named = tmp_path / "gateway.toml"
    if there:
        named.mkdir()
    read = seen(looked_files.configuration(None, {"GATEWAY_CONFIG": str(named)}))
    finding = only(files.settings(read))
    assert (finding.severity, str(named) in finding.title) == ("error", True)
    assert finding.mend.split(maxsplit=1)[0] in {"write", "put"}


def test_settings_that_are_wrong_at_a_line(tmp_path: Path) -> None:
    """The title is what is wrong, not where."""
    file = tmp_path / "gateway.toml"
    file.write_text("[engine]\nkeep_alive_seconds = 0\n")
    first = next(files.settings(seen(looked_files.configuration(file, {}))))
    assert first.title.startswith("engine.keep_alive_seconds must be more than 0")
    assert first.evidence == f"{file}, line 2"


def test_settings(tmp_path: Path) -> None:
    """What `gateway check` refuses is an error with its mend, what it warns of a warning."""
    refused = looked_files.configuration(
        None, {"GATEWAY_PORT": "no", "GATEWAY_UPSTREAM_URL": "http://e:8000"}
    )
    assert severities(files.settings(seen(refused))) == ["error"]
    valid = '[[models]]\nid = "qwen"\nengines = ["http://127.0.0.1:8000"]\n'
    assert severities(files.settings(configuration(tmp_path, valid))) == ["ok"]
    warned = configuration(tmp_path, valid, GATEWAY_UPSTREAM_URL="http://127.0.0.1:8000")
    assert severities(files.settings(warned)) == ["warning"]
    nothing = Configuration(None, ("There is no model to serve: set GATEWAY_UPSTREAM_URL",))
    assert only(files.settings(nothing)).mend.startswith("set GATEWAY_UPSTREAM_URL; then gateway check")
