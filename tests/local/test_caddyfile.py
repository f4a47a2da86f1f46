"""The Caddyfile is valid, and says what it must not leave to a default."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.local.caddies import CADDYFILE, Caddy, command

IDLE_OF_THE_GATEWAY_SECONDS = 180
NANOSECONDS = 1_000_000_000


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The configuration as Caddy itself reads it."""
    environ = Caddy(tmp_path_factory.mktemp("adapt")).environ
    done = subprocess.run(command("adapt"), env=environ, capture_output=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_valid(tmp_path: Path) -> None:
    """Caddy accepts it as it stands, a folder with a space in its name included."""
    environ = Caddy(tmp_path / "a folder").environ
    done = subprocess.run(command("validate"), env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "Valid configuration" in done.stdout) == (0, True), done.stderr


def test_formatted() -> None:
    """It is formatted as Caddy formats it."""
    done = subprocess.run(
        [command("fmt")[0], "fmt", str(CADDYFILE)], capture_output=True, text=True, check=False
    )
    assert done.stdout in ("", CADDYFILE.read_text())
    assert done.returncode == 0, done.stdout


def test_listens_on_loopback_alone(adapted: dict[str, Any]) -> None:
    """One server, on loopback, without port 80 and without an API to change it."""
    (server,) = adapted["apps"]["http"]["servers"].values()
    assert {address.rpartition(":")[0] for address in server["listen"]} <= {"127.0.0.1", "[::1]"}
    assert server["automatic_https"] == {"disable_redirects": True}
    assert server["protocols"] == ["h1", "h2"]
    assert adapted["admin"]["disabled"]
    assert adapted["apps"]["pki"]["certificate_authorities"]["local"]["install_trust"] is False


def test_cleans_nothing_up(adapted: dict[str, Any]) -> None:
    """At a start that would take away the folder in which the first certificate is just being saved."""
    assert adapted["apps"]["tls"]["disable_storage_clean"]


def test_keeps_connections_shorter_than_the_gateway(adapted: dict[str, Any]) -> None:
    """Caddy is the first to close an idle connection, so none is used that is just being closed."""
    (found,) = _values(adapted, "keep_alive")
    assert 0 < found["idle_timeout"] < IDLE_OF_THE_GATEWAY_SECONDS * NANOSECONDS


def test_neither_packs_nor_holds_back(adapted: dict[str, Any]) -> None:
    """No compression and no buffering anywhere on the way."""
    assert not list(_values(adapted, "encodings"))
    assert not list(_values(adapted, "response_buffers"))
    assert not list(_values(adapted, "request_buffers"))


def _values(node: Any, name: str) -> list[Any]:
    if isinstance(node, dict):
        here = [node[name]] if name in node else []
        return here + [found for child in node.values() for found in _values(child, name)]
    if isinstance(node, list):
        return [found for child in node for found in _values(child, name)]
    return []
