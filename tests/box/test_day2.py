"""What a box that runs can be asked and told: up again, status, logs, down, clean; how failures are told."""

import json
import subprocess
from pathlib import Path

import pytest

from deploy.box import caller
from tests.box.boxes import SERVICES, Box, clean
from tests.running import Gateway


@pytest.fixture
async def running(box: Box, shared_gateway: Gateway) -> Box:
    """A box whose containers run, with a real gateway (before a scripted engine) where its door is."""
    port = shared_gateway.url.rpartition(":")[2]
    box.set_up("cpu", SITE="off", GATEWAY_PORT=port, GRAFANA_PORT="39300")
    box.runs(*SERVICES, port=int(port))
    box.places.first_key.write_text(f"{shared_gateway.key}\n")
    return box


def test_up_again(running: Box) -> None:
    """A second `make up` changes nothing, asks a question, and prints a line that answers."""
    done = running.up()
    assert done.returncode == 0, done.stderr
    assert "Base URL: http://127.0.0.1:" in done.stdout
    assert "Models: fake-model" in done.stdout
    assert (
        "Grafana: http://127.0.0.1:39300/grafana/ (admin, password: secrets/grafana-password)" in done.stdout
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("curl ")]
    pasted = subprocess.run(
        ["sh", "-c", line], cwd=running.folder, capture_output=True, text=True, check=True
    )
    assert json.loads(pasted.stdout)["choices"]
    calls = [call for call in running.calls() if call[0] == "compose"]
    assert not [call for call in calls if {"restart", "pull", "build", "weights"} & {*call}]


def test_edited_file(running: Box) -> None:
    """A service whose file was edited since its start is restarted: Compose itself would not notice."""
    settings = running.folder / "deploy/profiles/gateway/cpu.toml"
    stack = json.loads((running.docker / "stack.json").read_text())
    mount = {"type": "bind", "source": str(settings), "target": "/etc/gateway/gateway.toml"}
    stack["services"]["gateway"]["volumes"] = [mount, {"type": "bind", "source": "/", "target": "/host"}]
    running.say("stack.json", stack)
    assert ["compose", "restart", "gateway"] not in running.calls()
    running.up()
    assert ["compose", "restart", "gateway"] not in running.calls()
    found = json.loads((running.docker / "containers.json").read_text())
    for container in found:
        container["State"]["StartedAt"] = "2020-01-01T00:00:00.123456789Z"
    running.say("containers.json", found)
    running.up()
    assert ["compose", "restart", "gateway"] in running.calls()


@pytest.mark.parametrize("process", ["sh", "python3"])
def test_edited_profile(running: Box, process: str) -> None:
    """The engine is restarted once, be it that it serves or that it waits after failed starts."""
    profile = running.folder / "deploy/profiles/cpu.yaml"
    stack = json.loads((running.docker / "stack.json").read_text())
    stack["services"]["vllm"]["volumes"] = [{"type": "bind", "source": str(profile), "target": "/serve.yaml"}]
    running.say("stack.json", stack)
    machine = json.loads((running.docker / "machine.json").read_text())
    running.say("machine.json", machine | {"engine_process": process})
    found = json.loads((running.docker / "containers.json").read_text())
    for container in found:
        container["State"]["StartedAt"] = "2020-01-01T00:00:00.123456789Z"
    running.say("containers.json", found)
    assert running.up().returncode == 0
    restarts = [call for call in running.calls() if "restart" in call]
    assert [call[-1] for call in restarts] == ["vllm"], restarts


def test_lost_key(running: Box) -> None:
    """A first key that is not accepted any more is said, and is no failure of the stack."""
    running.places.first_key.write_text("sk-gw-not-this-one\n")
    done = running.up()
    assert done.returncode == 0
    assert "is not accepted any more: write the rotated key into that file" in " ".join(done.stderr.split())


def test_service_that_ends(running: Box) -> None:
    """A service that ended is named with its last lines and what to do."""
    found = json.loads((running.docker / "containers.json").read_text())
    found[0]["State"] |= {"Status": "restarting", "ExitCode": 1}
    running.say("containers.json", found)
    done = running.up()
    assert done.returncode == 1
    assert f"make up: {SERVICES[0]} ended while starting (exit code 1). Its last lines:" in done.stderr
    assert "\n    the last words of a service\n" in done.stderr
    assert f"`make logs SERVICE={SERVICES[0]}` shows all of it" in done.stderr


def test_status(running: Box) -> None:
    """It lists services, engine, GPU, alerts and disk, as far as known, and ends in 1 if not all is well."""
    done = running.command("status")
    for part in (
        "gateway",
        "healthy",
        "RTX 5090",
        "Base URL",
        "Key store",
        "Alerts",
        "Disk",
        "GB free",
        "Profile",
    ):
        assert part in done.stdout, done.stdout + done.stderr
    # Nobody here answers to the names of the stack's networks: that is said, and counts as not well.
    assert "Engine" in done.stdout
    assert done.returncode == 1


def test_status_of_what_is_down(box: Box) -> None:
    """A stack that was not started is no failure."""
    box.set_up()
    done = box.command("status")
    assert (done.returncode, done.stdout) == (0, "The stack is not running: make up starts it.\n")


def test_logs(running: Box) -> None:
    """Of one service; a name that is none is refused with those that there are."""
    assert "the last words of a service" in running.command("logs", SERVICE="vllm").stdout
    done = running.command("logs", SERVICE="engine")
    assert "There is no service engine: SERVICE is one of alertmanager, gateway" in done.stderr


def test_down(running: Box) -> None:
    """The gateway is stopped first, so that its streams end before Caddy does; volumes stay."""
    assert running.command("down").returncode == 0
    calls = [call for call in running.calls() if call[0] == "compose"]
    stop, down = calls[-2:]
    assert stop == ["compose", "stop", "gateway"]
    assert "down" in down
    assert not {"-v", "--volumes"} & {*down}


def test_not_set_up(box: Box) -> None:
    """Targets that need a box say that there is none."""
    assert "the compose stack was not set up here" in box.command("backup", MODE="box").stderr


def test_env_counts(running: Box) -> None:
    """A variable of the shell does not override .env, of which an operator would not know."""
    assert running.command("status", HTTPS_PORT="1", GATEWAY_PORT="1").stdout.count("127.0.0.1:1/") == 0


def test_clean_says_and_asks(box: Box) -> None:
    """It names volumes and files with what is lost, and deletes nothing without an answer."""
    box.set_up()
    box.volume("gateway-data").mkdir(parents=True)
    box.places.backups.mkdir()
    done = clean(box)
    assert done.returncode == 1
    assert "vllm-gateway_gateway-data  (API keys and usage)" in done.stdout
    assert f"{box.places.secrets}  (secrets, the first API key" in done.stdout
    assert "vllm-gateway_weights" not in done.stdout
    assert f"{box.places.backups} stays." in done.stdout
    assert "Nothing was deleted. YES=1" in done.stderr
    assert box.places.env_file.exists()
    assert box.volume("gateway-data").exists()


def test_clean(box: Box) -> None:
    """Told not to ask, it deletes all but the model and the backups; with the cache the model, too."""
    box.set_up()
    box.volume("gateway-data").mkdir(parents=True)
    assert clean(box, "--yes").returncode == 0
    assert not box.volume("gateway-data").exists()
    assert box.volume("weights").exists()
    assert not box.places.env_file.exists()
    assert not box.places.secrets.exists()
    box.set_up()
    assert "vllm-gateway_weights  (the downloaded model)" in clean(box, "--yes", "--cache").stdout
    assert not box.volume("weights").exists()


def test_clean_of_what_runs(running: Box) -> None:
    """A stack that runs is not deleted under its callers."""
    done = clean(running, "--yes")
    assert (done.returncode, done.stderr) == (1, "The stack is running: make down first.\n")


def test_clean_without_docker(box: Box) -> None:
    """Volumes that cannot be seen are not forgotten: .env, which knows of them, stays."""
    box.set_up()
    box.has(trouble="Cannot connect to the Docker daemon")
    assert clean(box, "--yes").returncode == 1
    assert box.places.env_file.exists()


@pytest.mark.parametrize(
    ("name", "port", "url"),
    [
        ("box.lan", 443, "https://box.lan/v1"),
        ("box.lan", 8443, "https://box.lan:8443/v1"),
        ("", 8080, "http://127.0.0.1:8080/v1"),
    ],
)
def test_base_url(name: str, port: int, url: str) -> None:
    """The port stands in it unless it is the usual one."""
    assert caller.Door(name, port, Path("ca-bundle.pem"), own_authority=True).base_url == url


def test_line_for_a_name_of_the_lan(box: Box) -> None:
    """It verifies with the authority's certificate and works although this host does not know the name."""
    door = caller.Door("box.invalid", 8443, Path("ca-bundle.pem"), own_authority=True)
    line = caller.line(door, box.places, {"https_proxy": "http://proxy.example"})
    assert "--cacert secrets/ca.crt" in line
    assert "--resolve box.invalid:8443:127.0.0.1" in line
    assert "--noproxy box.invalid" in line
    assert '-H "Authorization: Bearer $(cat secrets/first-key)"' in line
    public = caller.line(caller.Door("box.invalid", 443, Path("x"), own_authority=False), box.places, {})
    assert "--cacert" not in public
    assert " -k" not in line + public
