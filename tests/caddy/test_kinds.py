"""One variable decides who certifies a name; what can be no name is refused in one line."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.caddy.sites import CADDYFILE, start

DAY_NANOSECONDS = 86_400 * 1_000_000_000
IDLE_OF_THE_GATEWAY_SECONDS = 180
LAN = [
    "spark",
    "spark.lan",
    "Spark.local",
    "a.b.internal",
    "x.home.arpa",
    "localhost",
    "192.168.1.5",
    "fd00::5",
]
MIXED = "spark.lan, llm.example.com\tbox.tail1234.ts.net 192.168.1.5"


def adapted(folder: Path, site: str, **others: str) -> dict[str, Any]:
    """The configuration as Caddy reads it for this SITE."""
    done = start(folder, site, "adapt", **others)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def issuers(document: dict[str, Any]) -> dict[str, str]:
    """Who certifies each name that has a rule of its own."""
    found: dict[str, str] = {}
    for policy in document["apps"].get("tls", {}).get("automation", {}).get("policies", []):
        via = [manager["via"] for manager in policy.get("get_certificate", [])]
        via += [issuer["module"] for issuer in policy.get("issuers", [])]
        found |= dict.fromkeys(policy.get("subjects", ["*"]), ",".join(via))
    return found


def hosts(document: dict[str, Any], port: int) -> set[str]:
    """The names that are answered on a port."""
    return {
        host for route in routes(document, port) for match in route.get("match", []) for host in match["host"]
    }


def routes(document: dict[str, Any], port: int) -> Iterator[dict[str, Any]]:
    """The routes of the server that listens there."""
    for server in document["apps"]["http"]["servers"].values():
        if server["listen"] == [f":{port}"]:
            yield from server["routes"]


def values(node: Any, name: str) -> Iterator[Any]:
    """What stands under this name, however deep."""
    if isinstance(node, dict):
        yield from [node[name]] if name in node else []
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from values(child, name)


@pytest.mark.parametrize("name", LAN)
def test_a_lan_name_is_certified_by_the_own_authority(tmp_path: Path, name: str) -> None:
    """Single labels, endings that the public DNS does not have, addresses; capitals do not matter."""
    document = adapted(tmp_path, name)
    assert issuers(document) == {name.lower(): "internal"}
    assert not list(values(document, "Strict-Transport-Security"))


@pytest.mark.parametrize(
    "name", ["llm.example.com", "example.org", "lan.example.com", "xn--bcher-kva.example"]
)
def test_a_public_name_is_left_to_automatic_https(tmp_path: Path, name: str) -> None:
    """No rule of its own, so ACME; browsers are told to stay on https."""
    document = adapted(tmp_path, name)
    assert issuers(document) in ({}, {"*": "acme"})
    assert hosts(document, 443) == {name}
    assert list(values(document, "Strict-Transport-Security")) == [["max-age=31536000"]]


def test_acme_is_told_the_address_if_there_is_one(tmp_path: Path) -> None:
    """ACME_EMAIL reaches the issuer; nothing that is no address does."""
    document = adapted(tmp_path, "llm.example.com", ACME_EMAIL="ops@example.com")
    assert set(values(document, "email")) == {"ops@example.com"}
    refused = start(tmp_path, "llm.example.com", "adapt", ACME_EMAIL="me {\n")
    assert refused.returncode == 1
    assert refused.stderr.startswith("ACME_EMAIL=")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ACME_EMAIL", "ops@example.com\nadmin 0.0.0.0:2019"),
        ("ACME_EMAIL", "ops@example.com\n"),
        ("ACME_EMAIL", "log {\nops@example.com\n}"),
        ("ACME_EMAIL", "ops@example.com\r"),
        ("ACME_EMAIL", "\x1b[2Jops@example.com"),
        ("ACME_EMAIL", "{env.HOME}@example.com"),
        *(
            ("HTTPS_PORT", port)
            for port in (
                "{env.HOME}",
                "0",
                "65536",
                "99999999999999999999",
                "-1",
                "443\n1",
                "443\nadmin",
                "x",
                "08",
                "1 ",
            )
        ),
    ],
)
def test_what_goes_into_the_caddyfile_cannot_bring_directives(tmp_path: Path, name: str, value: str) -> None:
    """Each line of it might be one: refused in one line, and Caddy is not started."""
    done = start(tmp_path, "llm.example.com", "adapt", **{name: value})
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.split("\n")[:-1]
    assert line.startswith(f"{name}=")
    assert line.isprintable()
    assert line.endswith("Mend it in .env, then: make up")


@pytest.mark.parametrize("port", ["1", "8443", "65535"])
def test_links_name_the_published_port(tmp_path: Path, port: str) -> None:
    """Where http leads to."""
    assert (
        f"https://llm.example.com:{port}/v1"
        in start(tmp_path, "llm.example.com", "adapt", HTTPS_PORT=port).stdout
    )


def test_a_tailscale_name_is_asked_of_tailscaled(tmp_path: Path) -> None:
    """And, as it belongs to a whole machine, nothing is said of its other ports."""
    document = adapted(tmp_path, "box.tail1234.ts.net")
    assert issuers(document) == {"box.tail1234.ts.net": "tailscale"}
    assert not list(values(document, "Strict-Transport-Security"))


def test_several_names_of_all_kinds(tmp_path: Path) -> None:
    """Commas, spaces and tabs part them; each is certified by its own kind, on both ports."""
    document = adapted(tmp_path, f"{MIXED},spark.lan", ACME_EMAIL="ops@example.com")
    assert issuers(document) == {
        "192.168.1.5": "internal",
        "spark.lan": "internal",
        "box.tail1234.ts.net": "tailscale",
        "*": "acme,acme",
    }
    names = {"spark.lan", "llm.example.com", "box.tail1234.ts.net", "192.168.1.5"}
    assert hosts(document, 443) == hosts(document, 80) == names


def test_clients_that_call_an_address_get_its_certificate(tmp_path: Path) -> None:
    """They name no host, and inside a container the address that they called is not known."""
    document = adapted(tmp_path, MIXED)
    assert set(values(document, "default_sni")) == {"192.168.1.5"}
    assert set(values(adapted(tmp_path, "fd00::5"), "default_sni")) == {"fd00::5"}


@pytest.mark.parametrize("site", [*LAN, "llm.example.com", "box.tail1234.ts.net", MIXED])
def test_caddy_accepts_it(tmp_path: Path, site: str) -> None:
    """As it would be started, but for the listening."""
    done = start(tmp_path, site, "validate")
    assert (done.returncode, "Valid configuration" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    "site",
    [
        "", " , ", "off", "spark.lan off", "https://spark.lan", "spark.lan/v1", "spark.lan:8443",
        "[fd00::5]:8443", "1.2.3.4 5.6.7.8", "300.1.1.1", "*.example.com", "my_box", "a..b", ".lan",
        "-a.lan", "büro.lan",
        "a\x01b.lan", "a\rb.lan", "a\x0bimport",
        "{$HOME}", 'a"b', "a;b", "$(id)", f"{'a' * 64}.lan", f"{'a.' * 127}lan",
    ],
)  # fmt: skip
def test_what_can_be_no_name_is_refused_in_one_line(tmp_path: Path, site: str) -> None:
    """The line says what was written and what to write; Caddy is not started."""
    done = start(tmp_path, site, "run")
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    shown = re.sub(r"[\x00-\x1f]", "?", site)
    assert line.startswith(f"SITE={shown}: ")
    assert line.endswith("Mend it in .env, then: make up")


def test_what_must_not_be_left_to_a_default(tmp_path: Path) -> None:
    """No API, no HTTP/3, heads longer than the gateway takes, all the time it takes for body and answer."""
    document = adapted(tmp_path, MIXED)
    assert document["admin"]["disabled"]
    assert document["apps"]["pki"]["certificate_authorities"]["local"]["install_trust"] is False
    for server in document["apps"]["http"]["servers"].values():
        assert server["protocols"] == ["h1", "h2"]
        assert server["max_header_bytes"] > 65_536
        assert server["read_header_timeout"] > 0
        assert not {"read_timeout", "write_timeout"} & server.keys()
    assert not list(values(document, "max_size"))
    assert not list(values(document, "response_header_timeout"))
    # At a start it would take away the folder in which the first certificate is being saved, now and then.
    assert document["apps"]["tls"]["disable_storage_clean"]


def test_nothing_packs_or_holds_back(tmp_path: Path) -> None:
    """No compression and no buffering anywhere on the way."""
    document = adapted(tmp_path, MIXED)
    for name in ("encodings", "response_buffers", "request_buffers", "flush_interval"):
        assert not list(values(document, name))


def test_connections_are_kept_shorter_than_the_gateway_keeps_them(tmp_path: Path) -> None:
    """Caddy is the first to close an idle one, so none is used that is just being closed."""
    times = {found["idle_timeout"] for found in values(adapted(tmp_path, MIXED), "keep_alive")}
    assert len(times) == 1
    assert 0 < times.pop() < IDLE_OF_THE_GATEWAY_SECONDS * 1_000_000_000


def test_own_certificates_last_as_long_as_acmes(tmp_path: Path) -> None:
    """So that one alert fits every kind, and a night in which renewing fails harms nobody."""
    document = adapted(tmp_path, "spark.lan")
    assert list(values(document, "lifetime")) == [90 * DAY_NANOSECONDS]
    assert list(values(document, "intermediate_lifetime")) == [365 * DAY_NANOSECONDS]


def test_formatted() -> None:
    """The Caddyfile is formatted as Caddy formats it."""
    caddy = str(Path(sys.executable).parent / "caddy")
    done = subprocess.run([caddy, "fmt", str(CADDYFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, CADDYFILE.read_text()), done.stderr
