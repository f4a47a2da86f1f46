"""Gatherers: what programs, files and /proc say becomes evidence; what is missing or broken too."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.doctor.evidence import (
    Compose,
    Container,
    EngineLog,
    Holder,
    Memory,
    Published,
)
from gateway.doctor.finding import Unseen
from gateway.doctor.look import files, host, listeners, machine, site, stack
from gateway.doctor.look.programs import ABSENT, SILENT, Done, docker_in, run
from gateway.doctor.machine import Gpu
from gateway.doctor.profile import Profile
from tests.doctor.answers import docker, text


def test_programs() -> None:
    """One that is missing, one that hangs, one that fails: none raises."""
    assert run(["no-such-program-anywhere"]).code == ABSENT
    assert run([sys.executable, "-c", "import time; time.sleep(600)"], seconds=0.2).code == SILENT
    failed = run([sys.executable, "-c", "raise SystemExit('it is broken')"])
    assert (failed.code, failed.last_line) == (1, "it is broken")


def test_gpus() -> None:
    """A GB10 has no memory of its own; of several cards each is told."""
    assert machine.gpus(text("nvidia-smi-gb10.csv")) == (Gpu("NVIDIA GB10", None, None, (580, 95, 5)),)
    first, second = machine.gpus(text("nvidia-smi-two.csv"))
    assert (first.memory, first.used, second.name) == (24576, 21034, "NVIDIA GeForce GT 1030")
    assert machine.gpus("") == ()


def test_capability_of_a_gpu() -> None:
    """CUDA's, where the driver tells it."""
    told = "NVIDIA GeForce RTX 3090, 24576, 10, 580.95.05, 8.6\nNVIDIA GB10, [N/A], [N/A], 580.95.05, 12.1\n"
    assert [gpu.capability for gpu in machine.gpus(told)] == [(8, 6), (12, 1)]
    for silent in ("A card, 1, 1, 470.1", "A card, 1, 1, 470.1, [N/A]"):
        assert [gpu.capability for gpu in machine.gpus(silent)] == [None]


def test_a_driver_that_knows_no_capability(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses the whole question, and is asked again without."""
    program = tmp_path / "nvidia-smi"
    refused = 'echo "Field \\"compute_cap\\" is not a valid field to query."; exit 2'
    program.write_text(
        f'#!/bin/sh\ncase "$1" in *compute_cap*) {refused};; esac\necho "Tesla T4, 15360, 0, 470.1"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    [gpu] = machine.look(docker({})).gpus
    assert (gpu.name, gpu.capability) == ("Tesla T4", None)
    program.write_text('#!/bin/sh\necho "Tesla T4, 15360, 0, 580.1, 7.5"\n')
    [gpu] = machine.look(docker({})).gpus
    assert gpu.capability == (7, 5)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (text("nvidia-smi-table.txt"), (13, 0)),
        ("| NVIDIA-SMI 590.44   KMD Version: 590.44   CUDA UMD Version: 13.1 |", (13, 1)),
        ("NVIDIA-SMI has failed", ()),
    ],
    ids=["580", "590", "broken"],
)
def test_cuda(said: str, version: tuple[int, ...]) -> None:
    """Older and newer heads of the table."""
    assert machine.cuda(said) == version


def test_holders() -> None:
    """Names without their paths; a memory that is not told is None."""
    assert host.held(text("nvidia-smi-apps.csv")) == (
        Holder(3021, "VLLM::EngineCore", 20512),
        Holder(4410, "ffmpeg", 812),
        Holder(5100, "Xorg", None),
    )


def test_a_machine_without_anything() -> None:
    """No docker, no GPU: that is what is seen."""
    looked = machine.look(lambda *_, **__: Done(ABSENT, "", "docker is not installed"))
    assert (looked.docker, looked.docker_trouble) == (False, "docker is not installed")


def test_stack() -> None:
    """Services with their published ports and variables; unset variables are left out."""
    found = stack.compose(docker({"compose config": text("compose-config.json")}))
    assert isinstance(found, Compose)
    assert found.services["grafana"].published == (Published(3000, 3000, "127.0.0.1"),)
    assert found.services["vllm"].environment == {
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120",
        "HF_HUB_OFFLINE": "1",
    }
    assert isinstance(stack.compose(docker({})), Unseen)
    assert isinstance(stack.compose(docker({"compose config": "no JSON"})), Unseen)


def test_containers() -> None:
    """Those of services, ended ones too; errands are left out."""
    told = {"ps": "a1\nb2\nc3", "inspect": text("docker-inspect.json")}
    assert stack.containers(docker(told), "box") == (
        Container(
            "vllm", "exited", 137, 4, out_of_memory=True, published=(Published(8000, 8000, "192.168.1.5"),)
        ),
        Container("caddy", "running", published=(Published(443, 443),)),
    )
    assert isinstance(stack.containers(docker({"ps": ""}), "box"), Unseen)
    assert isinstance(stack.containers(docker({}), "box"), Unseen)


def test_image_cuda() -> None:
    """By its environment; an image that is not here is not known."""
    told = docker({"image inspect": json.dumps(["PATH=/bin", "CUDA_VERSION=13.0.1"])})
    assert stack.image_cuda(told, "vllm") == (13, 0, 1)
    assert isinstance(stack.image_cuda(docker({"image inspect": "[]"}), "vllm"), Unseen)
    assert isinstance(stack.image_cuda(docker({}), "vllm"), Unseen)


def test_memory(tmp_path: Path) -> None:
    """In MiB."""
    file = tmp_path / "meminfo"
    file.write_text(
        "MemTotal: 127590000 kB\nMemAvailable: 61440000 kB\nCached: 51200000 kB\n"
        "SwapTotal: 16777216 kB\nSwapFree: 16777216 kB\nHugePages_Total: 0\n"
    )
    assert host.memory(file) == Memory(124599, 60000, 50000, 16384, 16384)
    assert isinstance(host.memory(tmp_path / "none"), Unseen)


def test_pids_left(tmp_path: Path) -> None:
    """The tightest group on the way up counts."""
    group = tmp_path / "user.slice" / "mine.scope"
    group.mkdir(parents=True)
    for folder, most, now in ((group, "max", 12), (group.parent, "500", 400), (tmp_path, "9000", 10)):
        (folder / "pids.max").write_text(f"{most}\n")
        (folder / "pids.current").write_text(f"{now}\n")
    own = tmp_path / "cgroup"
    own.write_text("0::/user.slice/mine.scope\n")
    assert host.limits(tmp_path, own).pids_left == 100
    assert host.limits(tmp_path, tmp_path / "none").pids_left is None


def test_filesystem(tmp_path: Path) -> None:
    """The longest mount that a folder lies under."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/export {tmp_path} nfs4 rw 0 0\n")
    assert host.filesystem(tmp_path / "data", mounts) == "nfs4"
    assert host.filesystem(Path("/"), mounts) == "ext4"


def test_owners_of_ports() -> None:
    """This process is named by its own socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in listeners.listening()
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert client.getsockname()[1] not in listeners.listening()
        assert f"(pid {os.getpid()})" in listeners.owners()[port]
    assert port not in listeners.listening()


def test_environment_of_who_listens() -> None:
    """By its port, and only what is asked for; of nobody nothing is known."""
    program = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], "
        "flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env={"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120", "HF_TOKEN": "secret"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        port = int(process.stdout.readline())
        assert listeners.environment(port, "VLLM_") == {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120"}
        process.communicate("")
    assert listeners.environment(port, "VLLM_") is None


def test_profile(tmp_path: Path) -> None:
    """Dashes for underscores; what is no YAML or not there is said."""
    file = tmp_path / "mine.yaml"
    file.write_text("model: a/b\nmax_num_seqs: 8\n")
    found = files.profile(file)
    assert isinstance(found, Profile)
    assert (found.number("max-num-seqs"), found.name) == (8, "mine")
    file.write_text("model: [")
    assert isinstance(files.profile(file), Unseen)
    assert isinstance(files.profile(tmp_path / "none.yaml"), Unseen)


def test_profile_as_logged() -> None:
    """Where no file is named, the engine's log tells its flags."""
    found = files.logged_profile(EngineLog("log", text("engine-well.log")))
    assert isinstance(found, Profile)
    assert (found.flags["tool-call-parser"], found.number("max-num-seqs")) == ("hermes", 32)
    assert found.flags["served-model-name"] == ["tiny-qwen3"]
    assert "backend='xgrammar'" in found.flags["structured-outputs-config"]
    assert found.place == "the engine's command line"
    for broken in ("nothing", "non-default args: {'model': ", "non-default args: {'a' 'b'}"):
        assert isinstance(files.logged_profile(EngineLog("log", broken)), Unseen)
    odd = files.logged_profile(EngineLog("log", "non-default args: {'model': 'm', 'backend': <Enum.A: 1>}"))
    assert isinstance(odd, Profile)
    assert odd.flags == {"model": "m", "backend": None}


def test_long_log(tmp_path: Path) -> None:
    """Its beginning and its end are read, however long it is between."""
    file = tmp_path / "engine.log"
    file.write_text("non-default args: {'model': 'a'}\n" + "x" * 60 + "\n" * (4 << 20) + "the end\n")
    found = files.log(file)
    assert isinstance(found, EngineLog)
    assert "non-default args" in found.text
    assert found.text.endswith("the end\n")
    assert len(found.text) < 3 << 20


def test_secrets_are_never_kept(tmp_path: Path) -> None:
    """Length, mode, whether it is usual: the text itself is in no evidence."""
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o755)
    (folder / "admin-token").write_text("changeme\n")
    (folder / "admin-token").chmod(0o644)
    found = files.secrets(tmp_path, {"GATEWAY_UPSTREAM_API_KEY": "a-very-secret-value"})
    assert [(one.name, one.length, one.usual) for one in found] == [
        ("secrets/admin-token", 8, True),
        ("GATEWAY_UPSTREAM_API_KEY", 19, False),
    ]
    assert "a-very-secret-value" not in repr(found)
    assert "changeme" not in repr(found)


def test_data_dir(tmp_path: Path) -> None:
    """One that is still to be made is judged by where it would lie; a file in its place is trouble."""
    assert files.data_dir(tmp_path / "new" / "data").trouble == ""
    (tmp_path / "file").write_text("")
    assert "is no folder" in files.data_dir(tmp_path / "file").trouble


def test_sites(tmp_path: Path) -> None:
    """A box by its .env, the local mode by its data, else a gateway alone."""
    assert site.find(tmp_path, {}).kind == "alone"
    (tmp_path / "data" / "run").mkdir(parents=True)
    (tmp_path / "data" / "gateway.toml").write_text("")
    (tmp_path / "data" / "run" / "ports.json").write_text('{"ops": 8091}')
    local = site.find(tmp_path, {})
    assert (local.kind, local.ports, local.environ["GATEWAY_DATA_DIR"]) == (
        "local",
        {"ops": 8091},
        str(tmp_path / "data"),
    )
    (tmp_path / "compose.yaml").write_text("")
    (tmp_path / ".env").write_text(
        "PROFILE=spark\nPROFILE_FILE=deploy/mine.yaml\nGATEWAY_CONFIG_FILE='my gw.toml'\n"
    )
    box = site.find(tmp_path, {"GATEWAY_PORT": "1", "PATH": "/bin"})
    assert (box.kind, box.environ) == ("box", {"PATH": "/bin"})
    assert (box.profile, box.config) == (tmp_path / "deploy" / "mine.yaml", tmp_path / "my gw.toml")


def test_docker_in_a_folder(tmp_path: Path) -> None:
    """The program is looked for in the PATH that is given."""
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\necho "$PWD $*"\n')
    program.chmod(0o755)
    ran = docker_in(tmp_path, {"PATH": str(tmp_path)})("version", "--short")
    assert ran.out.split() == [str(tmp_path), "version", "--short"]
