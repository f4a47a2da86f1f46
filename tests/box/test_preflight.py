"""What stands in the way of the stack is said at once, each with its mend, and nothing is changed before."""

import shutil
import socket
from pathlib import Path

import pytest

from deploy.box import first_run, machine, preflight
from deploy.local.problem import Problem
from tests.box.boxes import GIVEN, WELL, Box
from tests.box.machines import MACHINES


def refused(box: Box, **environ: str) -> str:
    """What a `make up` says that stops before it changed anything."""
    before = sorted(box.folder.iterdir())
    done = box.up(**{"MODE": "box", **GIVEN, **environ})
    assert done.returncode == 1, done.stderr
    assert [item for item in sorted(box.folder.iterdir()) if item.name != "__pycache__"] == before
    assert not [
        call
        for call in box.calls()
        if call[0] in {"run", "tag"} or call[:2] in (["compose", "up"], ["compose", "build"])
    ]
    return done.stderr


def looked_at(box: Box, monkeypatch: pytest.MonkeyPatch, profile: str = "", **given: str) -> str:
    """What the preflight says of a first start on a box; empty if nothing is in the way."""
    for name, value in box.environ().items():
        monkeypatch.setenv(name, value)
    seen = machine.look(box.places)
    planned = first_run.plan(first_run.profile(seen, profile), [], {**GIVEN, **given})
    try:
        preflight.check(preflight.look(box.places, seen, planned))
    except Problem as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("name", MACHINES)
def test_machine(box: Box, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine lacks is named with its mend."""
    change, message = MACHINES[name]
    change(box)
    assert message in looked_at(box, monkeypatch)


def test_a_machine_that_will_do(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The box as it is lacks nothing, and neither does one without a GPU for the profile cpu."""
    assert looked_at(box, monkeypatch) == ""
    (box.programs / "nvidia-smi").unlink()
    box.has(info={**WELL, "Runtimes": {}})
    assert looked_at(box, monkeypatch, profile="cpu") == ""


def test_engine_that_asks_outside(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine 25 is too old until it keeps the names of closed networks to itself."""
    box.has(engine="25.0.4")
    assert "CVE-2024-29018" in looked_at(box, monkeypatch)
    box.has(engine="25.0.5")
    assert looked_at(box, monkeypatch) == ""


def test_what_is_there_is_not_asked_for_again(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Compose, too: what Docker has already needs no room, however small the disk is."""
    disk = shutil.disk_usage(box.folder)._replace(free=6 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: disk)
    box.has(compose="")
    [line] = looked_at(box, monkeypatch).splitlines()[1:]
    assert "Docker has no Compose plugin" in line


def test_all_at_once(box: Box, tmp_path: Path) -> None:
    """Several lacks are several lines of one message, in one run."""
    box.has(engine="24.0.7", compose="2.17.3", info={**WELL, "Runtimes": {}, "DockerRootDir": str(tmp_path)})
    box.has_gpus("NVIDIA GeForce RTX 5090, 32607, 500, 550.1")
    said = refused(box, SITE="https://box.lan", WEIGHTS_DIR="/not/there")
    assert "make up: this stands in the way; nothing was changed:\n  - " in said
    for part in (
        "24.0.7",
        "2.17.3",
        "550.1",
        "Container Toolkit",
        "SITE holds",
        "WEIGHTS_DIR=/not/there is no",
    ):
        assert part in said


def test_ports(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that somebody listens on is named, on whatever address and whoever asks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"Port {port} is taken" in looked_at(box, monkeypatch, HTTPS_PORT=str(port))
    assert "HTTP_PORT=http is no port" in looked_at(box, monkeypatch, HTTP_PORT="http")


def test_subnet_that_was_named(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subnet that overlaps with another network's is named with its owner."""
    config = [{"Subnet": "10.1.0.0/16"}]
    box.say("networks.json", [{"Name": "office", "Labels": {}, "IPAM": {"Config": config}}])
    said = looked_at(box, monkeypatch, EDGE_NET="10.1.2")
    assert (
        "EDGE_NET: 10.1.2.0/24 overlaps with 10.1.0.0/16 of Docker's network office: choose another" in said
    )
    assert "OPS_NET: 'ten.1' is no prefix of a subnet" in looked_at(box, monkeypatch, OPS_NET="ten.1")


def test_disk(tmp_path: Path) -> None:
    """A disk with too little room is named with both numbers, for a folder that is not to be seen, too."""
    free = shutil.disk_usage(tmp_path).free
    [line] = preflight.space(tmp_path / "not" / "there", free + 10**12)
    assert "GB free, and images and model need" in line
    assert "free some, move Docker's data-root" in line
    assert list(preflight.space(tmp_path, 1)) == []


def test_another_checkout_runs(box: Box, tmp_path: Path) -> None:
    """The stack of another folder has the same names and data: it is named, and how it is stopped."""
    box.runs("vllm", folder=tmp_path / "elsewhere")
    said = refused(box)
    assert f"The stack of another checkout runs here: make down in {tmp_path / 'elsewhere'} first." in said


def test_unknown_profile(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PROFILE that is none is refused with those that there are."""
    known = "There is no profile rtx4090: PROFILE is one of cpu, rtx3090, rtx3090-shared"
    assert known in looked_at(box, monkeypatch, profile="rtx4090")


@pytest.mark.parametrize(
    "wanted", ["https://box.lan", "box.lan:8443", "box.lan/v1", "my_box", "off box.lan", "-x"]
)
def test_site(box: Box, monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    """A SITE that is no name is refused before a certificate is asked for."""
    assert "SITE" in looked_at(box, monkeypatch, SITE=wanted)
