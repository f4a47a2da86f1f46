"""What `make up` takes for a SITE is what Caddy's start script takes: nobody learns it from a container."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.box import site
from deploy.box.places import CHECKOUT

START = CHECKOUT / "deploy" / "caddy" / "start.sh"
LONG = ".".join(["a" * 61] * 4)  # 247 characters
SITES = [
    "spark",
    "Spark.LAN",
    "spark.lan,llm.example.org\tbox.local\n10.0.0.7",
    "spark.lan spark.lan",
    "10.0.0.7",
    "10.0.0.7 10.0.0.7",
    "10.0.0.7 10.0.0.8",
    "10.0.0.7 fd00::5",
    "fd00::5",
    "FD00::5",
    "[fd00::5]",
    "fd00::5 [fd00::5]",
    "[spark.lan]",
    "[10.0.0.7]",
    "fe80::1%eth0",
    "[fe80::1%eth0]",
    "::ffff:10.0.0.7",
    "010.0.0.7",
    "10.0.0.256",
    "10.0.0",
    "123",
    "example.123",
    f"{LONG}.abcde",  # 253
    f"{LONG}.abcdef",
    "a" * 63,
    "a" * 64,
    "a..b",
    ".lan",
    "lan.",
    "-a",
    "a-",
    "my_box",
    "bücher.example",
    "BÜCHER.example",
    "xn--bcher-kva.example",
    "*.lan",
    "https://box.lan",
    "box.lan:8443",
    "box.lan/v1",
    "box.lan\r",
    "box.lan\x0bother.lan",
    "box.lan;other.lan",
    "٣.lan",
    "off box.lan",
    "box.lan OFF",
    "off,",
    ",",
    "",
    " ",
]


def refused_by_script(folder: Path, wanted: str) -> bool:
    """Whether the real script refuses it; behind it a `caddy` that is content with everything."""
    caddy = folder / "caddy"
    if not caddy.exists():
        caddy.write_text("#!/bin/sh\nexit 0\n")
        caddy.chmod(0o755)
    environ = {"PATH": f"{folder}:{os.environ['PATH']}", "SITE": wanted, "LC_ALL": "C"}
    done = subprocess.run(["/bin/sh", START], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr)
    return bool(done.returncode)


@pytest.mark.parametrize("wanted", SITES)
def test_as_caddy_will_say(tmp_path: Path, wanted: str) -> None:
    """Both refuse it, or neither does."""
    assert bool(site.trouble(wanted)) == refused_by_script(tmp_path, wanted), site.trouble(wanted)


@pytest.mark.parametrize("wanted", ["1:2:3", ":::::", "1::2::3", "fd00::12345"])
def test_no_address_at_all(wanted: str) -> None:
    """What only looks like an address is refused here; the script would leave it to Caddy."""
    assert "is no host name" in site.trouble(wanted)


def test_address_in_a_url() -> None:
    """An IPv6 address has brackets in it, however it was written."""
    for wanted in ("fd00::5", "[fd00::5]", "FD00::5, box.lan"):
        assert site.url({"SITE": wanted}) == "https://[fd00::5]"
    assert site.url({"SITE": "fd00::5", "HTTPS_PORT": "8443"}) == "https://[fd00::5]:8443"
