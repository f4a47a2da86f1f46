"""A first `make up` writes .env and secrets/ once, as private as they have to be; no later one touches it."""

import os
import stat
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from deploy.box import first_run, networks, secret_files, site, variables
from deploy.local.problem import Problem
from tests.box.boxes import GIVEN, Box

STOPPED_THERE = {"fails": {"pull": "the registry is out of reach"}, "absent": ["image/vllm:1"]}


def first_up(box: Box, **environ: str) -> None:
    """A first run that ends where images are pulled: .env and secrets/ are there by then."""
    box.has(**STOPPED_THERE)
    done = box.up(**{**GIVEN, **environ})
    assert "docker compose" in done.stderr
    assert "pull" in done.stderr
    assert done.returncode == 1


def modes(folder: Path) -> dict[str, int]:
    """The mode of each file."""
    return {
        file.name: stat.S_IMODE(file.stat().st_mode)
        for file in folder.iterdir()
        if not file.name.startswith(".")
    }


def test_env(box: Box) -> None:
    """.env is the operator's alone, and says all that compose.yaml asks for."""
    first_up(box)
    assert stat.S_IMODE(box.places.env_file.stat().st_mode) == 0o600
    found = variables.load(box.places)
    assert found["COMPOSE_FILE"] == "compose.yaml:deploy/profiles/compose/rtx5090.yaml"
    assert found["COMPOSE_PROFILES"] == "edge"
    assert found["SITE_URL"] == "https://box.lan:19443"
    assert found["SECRETS_GID"] == str(os.getgid())
    for name in ("PROFILE_FILE", "GATEWAY_CONFIG_FILE"):
        assert (box.folder / found[name]).is_file()


def test_secrets(box: Box) -> None:
    """The folder is the operator's; containers read the files by group; what nobody gave is an empty file."""
    first_up(box, HF_TOKEN="hf_of_the_tests")
    assert stat.S_IMODE(box.places.secrets.stat().st_mode) == 0o700
    names = {
        "admin-token",
        "grafana-password",
        "hf-token",
        "alert-url",
        "smtp-password",
        "alertmanager.yml",
        "ca-bundle.pem",
    }
    assert modes(box.places.secrets) == dict.fromkeys(names, 0o640)
    assert {file.stat().st_gid for file in box.places.secrets.iterdir()} == {os.getgid()}
    assert (box.places.secrets / "hf-token").read_text() == "hf_of_the_tests"
    assert (box.places.secrets / "alert-url").read_text() == ""
    assert len((box.places.secrets / "grafana-password").read_text()) >= 24


def test_nothing_is_overwritten(box: Box) -> None:
    """A second run leaves all of it as it is, and says where what was given now is not what .env says."""
    first_up(box)
    box.places.env_file.write_text(box.places.env_file.read_text() + "# mine\n")
    before = {file: file.read_bytes() for file in [box.places.env_file, *box.places.secrets.iterdir()]}
    done = box.up(SITE="other.lan", PROFILE="cpu")
    assert {
        file: file.read_bytes() for file in [box.places.env_file, *box.places.secrets.iterdir()]
    } == before
    assert "SITE=other.lan was given, and .env says SITE=box.lan: .env is what counts" in done.stderr
    assert "PROFILE=cpu was given, and .env says PROFILE=rtx5090" in done.stderr


def test_no_secret_is_said(box: Box) -> None:
    """Neither tokens nor passwords stand in what `make up` writes, or in docker's arguments."""
    first_up(box, HF_TOKEN="hf_of_the_tests", ALERT_URL="https://ntfy.sh/our-secret-topic")
    done = box.up()
    secrets = [(box.places.secrets / name).read_text() for name in ("admin-token", "grafana-password")]
    for secret in [*secrets, "hf_of_the_tests", "our-secret-topic"]:
        assert secret not in done.stdout + done.stderr + str(box.calls())


def test_alert_url(box: Box) -> None:
    """ALERT_URL becomes Alertmanager's configuration; the address itself is in a file of its own."""
    first_up(box, ALERT_URL="https://hooks.slack.com/services/T/B/x")
    assert "slack_configs" in (box.places.secrets / "alertmanager.yml").read_text()
    assert (box.places.secrets / "alert-url").read_text() == "https://hooks.slack.com/services/T/B/x"


def test_site_off(box: Box) -> None:
    """SITE=off leaves Caddy out and publishes gateway and Grafana on loopback."""
    first_up(box, SITE="off", GRAFANA_PORT="39300", GATEWAY_PORT="39800")
    found = variables.load(box.places)
    assert found["COMPOSE_PROFILES"] == ""
    assert found["COMPOSE_FILE"].endswith(":deploy/site-off.yaml")
    assert found["SITE_URL"] == "http://127.0.0.1:39300"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("admin-token", "", "secrets/admin-token is empty: put a secret in, or remove the file"),
        ("admin-token", "one\ntwo\n", "secrets/admin-token holds 2 lines: a secret is one line"),
        ("hf-token", "hf_a\nhf_b", "secrets/hf-token holds 2 lines"),
        ("grafana-password", " \r\n", "secrets/grafana-password is empty"),
        (
            "alert-url",
            None,
            "secrets/alert-url is a directory, as Docker makes one for a file that is missing",
        ),
    ],
)
def test_bad_secret(box: Box, name: str, content: str | None, message: str) -> None:
    """A secret that cannot be one stops the start, by its name and not by what is in it."""
    planned = box.set_up()
    file = box.places.secrets / name
    file.unlink()
    file.mkdir() if content is None else file.write_text(content)
    file.chmod(0o755 if content is None else 0o640)
    [line] = secret_files.troubles(box.places, planned)
    assert line.startswith(message)
    assert "hf_a" not in line


def test_secret_that_containers_cannot_read(box: Box) -> None:
    """A mode that shuts the containers out stops the start, with the command that mends it."""
    box.set_up()
    (box.places.secrets / "admin-token").chmod(0o600)
    done = box.up()
    assert done.returncode == 1
    assert f"chgrp {os.getgid()} secrets/admin-token && chmod 0640 secrets/admin-token" in done.stderr


def test_line_end_of_a_secret_is_none_of_it(box: Box) -> None:
    """A file that an editor ended with a line break is fine."""
    planned = box.set_up()
    (box.places.secrets / "admin-token").write_text("a-token-of-mine\r\n")
    assert secret_files.troubles(box.places, planned) == []


def test_asks_on_a_terminal(box: Box) -> None:
    """It asks for SITE and ALERT_URL, says what is wrong with an answer, and asks again."""
    box.has(**STOPPED_THERE)
    shown = box.on_terminal("https://spark\nspark.lan\nno address\nhttps://ntfy.sh/topic\n", "up")
    assert "which is no host name" in shown
    assert "ALERT_URL holds white space" in shown
    assert variables.load(box.places)["SITE"] == "spark.lan"
    assert "ntfy.sh/topic" in (box.places.secrets / "alert-url").read_text()
    assert "The name that callers use" not in box.on_terminal("", "up")


def test_env_without_profile(box: Box) -> None:
    """Somebody else's .env is not taken over."""
    box.places.env_file.write_text("OTHER=1\n")
    done = box.up(MODE="box")
    assert "names no PROFILE: add it, or move that file away" in done.stderr
    assert box.places.env_file.read_text() == "OTHER=1\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=b", "b"),
        ("export A=b # why", "b"),
        ("A='b # c'", "b # c"),
        ('A="b c"', "b c"),
        ("A=", ""),
        ("# A=b\nA=c", "c"),
        ("A=#none", ""),
        ("A=b#c", "b#c"),
    ],
)
def test_reads_as_compose_does(text: str, value: str) -> None:
    """Quotes, comments and `export`."""
    assert variables.parse(text)["A"] == value


def test_values_that_env_cannot_hold() -> None:
    """What would be read as another value is not written."""
    assert variables.parse(f"A={variables.quoted('/a b/$c')}") == {"A": "/a b/$c"}
    with pytest.raises(Problem, match="quotation mark"):
        variables.quoted("it's")


def test_free_subnets() -> None:
    """The usual pair, or the next one that overlaps with nothing."""
    assert networks.choose([]) == networks.USUAL
    office = networks.Used(IPv4Network("172.30.81.128/25"), "the interface eth0")
    assert networks.choose([office]) == ("172.30.82", "172.30.83")


def test_subnets_of_the_host(tmp_path: Path) -> None:
    """The kernel's routes count, the way to everything does not, and an own network is in nobody's way."""
    table = tmp_path / "route"
    table.write_text(
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "wg0\t00501EAC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    assert networks.of_host(table) == [networks.Used(IPv4Network("172.30.80.0/24"), "the interface wg0")]


def test_own_name() -> None:
    """A host without a domain is called under .local; one whose name is none is localhost."""
    assert site.usual("Spark-1f") == "spark-1f.local"
    assert site.usual("spark.example.org") == "spark.example.org"
    assert site.usual("my_host") == site.usual("localhost.localdomain") == "localhost"


def test_own_roots(tmp_path: Path) -> None:
    """The bundle of a proxy that inspects TLS is found where tools look for it, and goes into .env."""
    bundle = tmp_path / "roots.pem"
    bundle.touch()
    environ = {"CURL_CA_BUNDLE": "/not/there", "NODE_EXTRA_CA_CERTS": str(bundle), "SITE": "box.lan"}
    assert first_run.plan("cpu", [], environ)["CA_BUNDLE"] == str(bundle)
    assert "CA_BUNDLE" not in first_run.plan("cpu", [], {})


def test_tailscale() -> None:
    """A name under ts.net brings the socket of the host's tailscaled to Caddy."""
    planned = first_run.plan("cpu", [], {"SITE": "spark.tail1234.ts.net"})
    assert planned["COMPOSE_FILE"].endswith(":deploy/caddy/tailscale.yaml")
