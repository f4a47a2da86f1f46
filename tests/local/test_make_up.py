"""The main job, as a person does it: `make up` in a fresh checkout, paste the line, `make down`."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from deploy.local.table import Process
from tests.local.checkouts import UP_SECONDS, Checkout
from tests.local.waiting import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="the printed line needs curl")


@pytest.fixture(scope="module")
def printed(checkout: Checkout) -> str:
    """What the first `make up` printed."""
    shown = checkout.make("up", UP_SECONDS)
    assert "an earlier run" not in checkout.progress
    return shown


def test_line_answers(checkout: Checkout, printed: str) -> None:
    """The printed line, pasted, answers in English."""
    assert "The capital of France is Paris" in checkout.paste(printed)


def test_again(checkout: Checkout, printed: str) -> None:
    """A second `make up` prints the same line and starts nothing new."""
    before = checkout.processes()
    assert checkout.make("up") == printed
    assert checkout.processes() == before
    assert "Already running." in checkout.progress
    assert "Starting" not in checkout.progress


def test_key_that_is_not_accepted(checkout: Checkout, printed: str) -> None:
    """With another key in its file, `make up` succeeds and prints the address, but no line that fails.

    Once the file is removed, the next one makes a key that works.
    """
    file = checkout.folder / "data" / "first-key"
    file.write_text("rotated\n")
    shown = checkout.make("up")
    assert f"The key in {file} is not accepted any more" in checkout.progress
    file.unlink()
    assert "Paris" in checkout.paste(checkout.make("up"))
    assert printed.startswith(shown)
    assert "Base URL: " in shown
    assert "curl " not in shown


def test_base_url_for_scripts(checkout: Checkout, printed: str) -> None:
    """The base URL lies in a file with nothing secret in it."""
    file = checkout.folder / "data" / "base-url"
    assert f"Base URL: {file.read_text()}" in printed
    assert file.stat().st_mode & 0o777 == 0o644


def test_status(checkout: Checkout, printed: str) -> None:
    """`make status` names the services, the model and the address, and all is well."""
    shown = checkout.make("status")
    for word in (
        "engine",
        "gateway",
        "caddy",
        "running",
        "smollm2-135m (alias: default)",
        "https://localhost:",
    ):
        assert word in shown
    assert shown.count("ok") == 3
    assert f"Settings: {checkout.folder / 'data' / 'gateway.toml'}\n" in shown
    assert printed


def test_gateway_that_crashes(checkout: Checkout, printed: str) -> None:
    """The gateway, killed, is back within seconds, and the line still answers."""
    gateway = _gateway(checkout)
    os.kill(gateway, signal.SIGKILL)
    wait_until(lambda: _gateway(checkout) not in (0, gateway))
    wait_until(lambda: "Paris" in checkout.paste(printed))  # Caddy waits for it, but only some seconds


def _gateway(checkout: Checkout) -> int:
    for process in checkout.processes():
        if b"gateway\0serve" in Path(f"/proc/{process.id}/cmdline").read_bytes():
            return process.id
    return 0


def test_down(checkout: Checkout, printed: str) -> None:
    """`make down` leaves no process, and what it keeps is what the next `make up` needs."""
    assert printed
    members = checkout.processes()
    assert len(members) >= 4  # supervisord and its three services, whatever else these have started
    checkout.make("down", UP_SECONDS)
    assert not [process for process in members if _lives(process)]
    assert (checkout.folder / "data" / "first-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("target", ["status", "logs"])
def test_of_a_stack_that_is_down(checkout: Checkout, printed: str, target: str) -> None:
    """After `make down`, `make status` and `make logs` say so, end, and are no failure."""
    assert printed
    assert checkout.make(target).rstrip().endswith("The stack is not running: make up starts it.")


def _lives(process: Process) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{process.id}/stat").read_bytes()
    except FileNotFoundError:
        return False
