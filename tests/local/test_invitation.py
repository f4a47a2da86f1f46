"""What `make up` prints: a base URL and a line that works when it is pasted."""

import json
import shlex
from pathlib import Path

import pytest

from deploy.local import stack
from deploy.local.engine import ServedModel
from deploy.local.places import Places
from deploy.local.ports import Ports

MODEL = ServedModel("smollm2-135m", Path("/weights"))
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own proxies do not matter here."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def curl() -> list[str]:
    """The printed line, as a shell splits it."""
    (line,) = [
        line
        for line in stack.invitation(Places(), Ports(https=8444), MODEL).splitlines()
        if line.startswith("curl ")
    ]
    return shlex.split(line)


def test_says_where() -> None:
    """The base URL and the model are there to read."""
    text = stack.invitation(Places(), Ports(https=8444), MODEL)
    assert "Base URL: https://localhost:8444/v1\n" in text
    assert "Model: smollm2-135m (alias: default)\n" in text


def test_line_is_for_this_folder() -> None:
    """Before the line it says where it works; without an accepted key there is neither."""
    text = stack.invitation(Places(), Ports(), MODEL)
    assert "\nIn this folder:\n\ncurl " in text
    assert "curl" not in stack.invitation(Places(), Ports(), MODEL, with_call=False)


def test_line() -> None:
    """One line that verifies the certificate, reads the key from its file, and sends valid JSON."""
    argv = curl()
    assert argv[argv.index("--cacert") + 1] == "data/ca-bundle.pem"
    assert "https://localhost:8444/v1/chat/completions" in argv
    assert "Authorization: Bearer $(cat data/first-key)" in argv
    body = json.loads(argv[argv.index("-d") + 1])
    assert body["model"] == "default"
    assert body["messages"][0]["role"] == "user"
    assert not {"-k", "--insecure"} & set(argv)


@pytest.mark.parametrize("name", PROXIES)
def test_line_behind_a_proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where a proxy is set, the line goes past it: it could not reach this machine's loopback."""
    monkeypatch.setenv(name, "http://proxy.example:3128")
    argv = curl()
    assert argv[argv.index("--noproxy") + 1] == "localhost"
