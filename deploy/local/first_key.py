"""The first API key: made once through the gateway's own command line, kept where the curl line reads it."""

import json
import os
import subprocess
import time

from deploy.local import probe, whole_file
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem

# The gateway looks for new keys several times a second.
KNOWN_SECONDS = 5.0


def ensure(places: Places, ports: Ports) -> None:
    """Makes the key unless its file is there, and waits until the running gateway knows it.

    Raises Problem if the gateway's command fails.
    """
    if places.first_key.exists():
        return
    _make(places)
    deadline = time.monotonic() + KNOWN_SECONDS
    while not accepted(places, ports) and time.monotonic() < deadline:
        time.sleep(0.05)


def _make(places: Places) -> None:
    done = subprocess.run(
        [places.programs / "gateway", "keys", "create", "--name", "first", "--json"],
        env={**os.environ, "GATEWAY_DATA_DIR": str(places.data)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Problem(f"The first key could not be made: {(done.stderr or done.stdout).strip()}")
    key = json.loads(done.stdout)["key"]
    whole_file.replace(places.first_key, f"{key}\n", mode=whole_file.PRIVATE)


def read(places: Places) -> str:
    """The key. Raises FileNotFoundError before it was made."""
    return places.first_key.read_text(encoding="ascii").strip()


def accepted(places: Places, ports: Ports) -> bool:
    """Whether the gateway accepts the key: not once it was revoked or rotated, or belongs to other data."""
    return probe.get(f"http://127.0.0.1:{ports.gateway}/v1/models", key=read(places)).status != 401
