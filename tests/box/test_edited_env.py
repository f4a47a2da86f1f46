"""An .env that was edited badly is answered by a line that says what to write, never by a traceback."""

import os
import re

import pytest

from deploy.box import edited_env, site, variables
from tests.box.boxes import Box

OVERLAY = "deploy/profiles/compose/rtx5090.yaml"
WHOLE = f"write COMPOSE_FILE=compose.yaml:{OVERLAY}"
# What a line becomes (None: it goes), and what is said of it.
EDITS = [
    ("SITE", None, f"SITE is missing or empty: write SITE={site.usual()}"),
    ("SITE", "", "SITE is missing or empty: write SITE="),
    ("SITE_URL", None, "SITE_URL is missing or empty: write SITE_URL=https://box.lan:19443"),
    ("SECRETS_GID", None, f"SECRETS_GID is missing or empty: write SECRETS_GID={os.getgid()}"),
    ("SECRETS_GID", "staff", f"SECRETS_GID=staff is no number: write SECRETS_GID={os.getgid()}"),
    ("SECRETS_GID", "²", "SECRETS_GID=² is no number"),
    ("PROFILE_FILE", None, "write PROFILE_FILE=./deploy/profiles/rtx5090.yaml"),
    ("GATEWAY_CONFIG_FILE", "", "write GATEWAY_CONFIG_FILE=./deploy/profiles/gateway/rtx5090.toml"),
    ("COMPOSE_FILE", None, WHOLE),
    ("COMPOSE_FILE", "", WHOLE),
    ("COMPOSE_FILE", "compose.yaml", f"lacks the overlay of the profile rtx5090: {WHOLE}"),
    ("COMPOSE_FILE", "compose.yaml:deploy/gpu-energy.yaml", "lacks the overlay of the profile"),
    ("COMPOSE_FILE", "compose.yaml:deploy/profiles/compose/cpu.yaml", "lacks the overlay of the profile"),
    ("COMPOSE_FILE", OVERLAY, f"COMPOSE_FILE lacks compose.yaml: {WHOLE}"),
    ("HTTPS_PORT", "²", "HTTPS_PORT=² is no port: write a number up to 65535"),
    ("HTTPS_PORT", "9" * 5000, "is no port: write a number"),
    ("OPS_NET", "198.18.80", "EDGE_NET and OPS_NET are both 198.18.80: write two subnets that differ"),
    ("EDGE_NET", "", "EDGE_NET is missing or empty: write EDGE_NET=172.30.80"),
]


def edit(box: Box, name: str, value: str | None) -> None:
    """Changes a line of .env, or takes it out."""
    text = box.places.env_file.read_text()
    line = "" if value is None else f"{name}={value}\n"
    assert re.search(rf"(?m)^{name}=", text)
    box.places.env_file.write_text(re.sub(rf"(?m)^{name}=.*\n", line, text))


@pytest.mark.parametrize(("name", "value", "message"), EDITS)
def test_each(box: Box, name: str, value: str | None, message: str) -> None:
    """The variable is named, and the line that mends it."""
    box.set_up()
    edit(box, name, value)
    [line] = edited_env.troubles(box.places, variables.load(box.places))
    assert message in line


def test_as_it_was_written(box: Box) -> None:
    """What `make up` writes lacks nothing, and neither do an own overlay and the optional parts."""
    planned = box.set_up()
    assert list(edited_env.troubles(box.places, planned)) == []
    for files in (f"{planned['COMPOSE_FILE']}:deploy/open-webui.yaml", "./compose.yaml:deploy/mine.yaml"):
        assert list(edited_env.troubles(box.places, {**planned, "COMPOSE_FILE": files})) == []


@pytest.mark.parametrize("command", ["up", "down", "status", "backup", "upgrade", "alert-test"])
def test_every_command(box: Box, command: str) -> None:
    """All lines at once, and no traceback, from each command that needs them."""
    box.set_up()
    for name in ("SITE", "SECRETS_GID", "COMPOSE_FILE"):
        edit(box, name, None)
    done = box.command(command)
    assert done.returncode == 1
    assert f"make {command}: this in .env stands in the way:\n  - SITE is missing" in done.stderr
    assert "SECRETS_GID is missing" in done.stderr
    assert WHOLE.partition(":")[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_not_utf8(box: Box) -> None:
    """A byte of another encoding is found by its line."""
    box.set_up()
    box.places.env_file.write_bytes(b"PROFILE=rtx5090\nACME_EMAIL=j\xfcrgen@example.org\n")
    done = box.up()
    assert done.returncode == 1
    assert f"{box.places.env_file} is not UTF-8 in line 2: write that line anew." in done.stderr
    assert "Traceback" not in done.stderr


def test_subnet_that_is_none(box: Box) -> None:
    """Three numbers are what it takes."""
    box.set_up()
    edit(box, "EDGE_NET", "172.30")
    assert "EDGE_NET: '172.30' is no prefix of a subnet: write three numbers" in box.up().stderr


def test_open_secrets(box: Box) -> None:
    """secrets/ that others may look into is shut, and it is said; what is no directory is named."""
    box.set_up()
    box.places.secrets.chmod(0o755)
    (box.places.secrets / "alertmanager.yml").write_text("")
    assert "secrets/alertmanager.yml is empty: remove it, and make up writes it anew" in box.up().stderr
    (box.places.secrets / "alertmanager.yml").unlink()
    box.has(fails={"up -d": "no more than this is looked at here"})
    assert "secrets/ had mode 0755, open to others: it is 0700 now." in box.up().stderr
    assert box.places.secrets.stat().st_mode & 0o777 == 0o700
