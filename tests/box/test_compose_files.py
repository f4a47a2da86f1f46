"""The compose files, read by the real Compose where there is one: what `make up` writes completes them."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.box import first_run, profiles, secret_files, variables
from deploy.box.places import CHECKOUT, Places
from tests.box.boxes import UNRELATED, Box
from tests.stack import debian, engine
from tests.stack.engine import Programs


@functools.cache
def environ() -> Mapping[str, str]:
    """An environment in which `docker compose` works: the machine's, or Debian's, unpacked beside it."""
    plain = {name: value for name, value in os.environ.items() if name not in UNRELATED}
    if _works(plain):
        return plain
    if not debian.codename():
        pytest.skip("no docker compose here, and this is no Debian to take it from")
    try:
        programs = Programs(
            debian.unpacked("compose", engine.SUITE, ["docker-cli", "docker-compose"], _as_plugin)
        )
    except debian.AptFailure as failure:
        pytest.skip(f"no docker compose here: {failure}")
    return {**plain, **programs.environ}


def _works(environ: Mapping[str, str]) -> bool:
    program = shutil.which("docker", path=environ["PATH"])
    asked = [program, "compose", "version"] if program else ["false"]
    return subprocess.run(asked, env=environ, capture_output=True, check=False).returncode == 0


def _as_plugin(root: Path) -> None:
    """Compose, where the client of the same folder looks for it."""
    (root / "config").mkdir()
    (root / "usr/libexec/docker/cli-plugins").rename(root / "config/cli-plugins")


def compose(box: Box, *argv: str) -> subprocess.CompletedProcess[str]:
    """The real `docker compose …` in the checkout."""
    return subprocess.run(
        ["docker", "compose", *argv],
        cwd=box.folder, env=environ(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def model(box: Box, site: str, profile: str = "cpu", more: str = "") -> Any:
    """What Compose makes of the files and of the .env that a first run writes."""
    planned = first_run.plan(profile, [], {"SITE": site})
    planned["COMPOSE_FILE"] += more
    secret_files.ensure(box.places, planned, "", {})
    variables.write(box.places, planned)
    done = compose(box, "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def published(services: Mapping[str, Any]) -> dict[str, list[str]]:
    """By service: address and port that it is published on."""
    ports = {name: service.get("ports") or [] for name, service in services.items()}
    return {
        name: [f"{port.get('host_ip', '*')}:{port['published']}" for port in listed]
        for name, listed in ports.items()
        if listed
    }


def test_without_env(box: Box) -> None:
    """Plain `docker compose up` in a fresh checkout stops with one line that says what to do."""
    done = compose(box, "up", "-d")
    assert done.returncode
    assert len(done.stderr.strip().splitlines()) == 1
    assert "run `make up` first" in done.stderr


@pytest.mark.parametrize("name", ["SECRETS_GID", "PROFILE_FILE", "GATEWAY_CONFIG_FILE"])
def test_empty_variable(box: Box, name: str) -> None:
    """A variable that is set to nothing stops it as well: it would start with something nobody meant."""
    model(box, "box.lan")
    text = box.places.env_file.read_text()
    box.places.env_file.write_text(text.replace(f"{name}={variables.parse(text)[name]}", f"{name}="))
    done = compose(box, "config", "-q")
    assert done.returncode
    assert "run `make up` first" in done.stderr


@pytest.mark.parametrize("profile", profiles.known(Places(CHECKOUT)))
def test_every_profile(box: Box, profile: str) -> None:
    """With each profile it is a valid stack in which Caddy alone is published beyond loopback."""
    services = model(box, "box.lan", profile)["services"]
    assert published(services) == {"caddy": ["*:80", "*:443"]}


def test_site_off(box: Box) -> None:
    """SITE=off: no Caddy, gateway and Grafana on loopback."""
    services = model(box, "off")["services"]
    assert "caddy" not in services
    assert published(services) == {"gateway": ["127.0.0.1:8080"], "grafana": ["127.0.0.1:3000"]}
    assert services["grafana"]["environment"]["GF_SERVER_ROOT_URL"] == "http://127.0.0.1:3000/grafana/"


def test_gpu_energy(box: Box) -> None:
    """The optional part lets the gateway read the cards, and changes nothing else of it."""
    plain = model(box, "box.lan", "spark")["services"]["gateway"]
    box.places.env_file.unlink()
    measuring = model(box, "box.lan", "spark", more=":deploy/gpu-energy.yaml")["services"]["gateway"]
    [card] = measuring.pop("deploy")["resources"]["reservations"]["devices"]
    assert (card["driver"], card["count"], card["capabilities"]) == ("nvidia", -1, ["gpu", "utility"])
    assert measuring["environment"].pop("GATEWAY_USAGE__GPU_ENERGY") == "on"
    assert measuring == {name: value for name, value in plain.items() if name != "deploy"}
    assert "devices" not in json.dumps(plain)


def test_open_webui(box: Box) -> None:
    """The optional chat interface is on loopback, calls the gateway inside, and has a secret of its own."""
    found = model(box, "box.lan", more=":deploy/open-webui.yaml")
    service = found["services"]["open-webui"]
    assert published(found["services"]) == {"caddy": ["*:80", "*:443"], "open-webui": ["127.0.0.1:3001"]}
    assert list(service["networks"]) == ["edge"]
    assert service["environment"]["OPENAI_API_BASE_URL"] == "http://gateway:8080/v1"
    assert [secret["source"] for secret in service["secrets"]] == ["open-webui-key"]
    assert not service["image"].endswith(("latest", "main"))


def test_every_secret_is_there(box: Box) -> None:
    """What the files mount, a first run has made: of a missing file Docker would make a directory."""
    found = model(box, "box.lan", more=":deploy/open-webui.yaml")
    for secret in found["secrets"].values():
        assert os.path.isfile(secret["file"]), secret  # noqa: PTH113


def test_every_variable_is_written_or_has_a_default(box: Box) -> None:
    """Compose warns of a variable that is unset and becomes nothing: there is none."""
    model(box, "box.lan", more=":deploy/site-off.yaml:deploy/open-webui.yaml")
    assert "is not set" not in compose(box, "config", "-q").stderr
