"""API keys made through the gateway's own command in its container, kept in secrets/."""

import json
from pathlib import Path

from deploy.box import docker, secret_files
from deploy.box.places import Places
from deploy.local import whole_file
from deploy.local.problem import Problem

GATEWAY = ("compose", "exec", "-T", "gateway")


def ensure_first(places: Places, group: int) -> None:
    """Makes the first key unless its file is there. Raises Problem if the gateway's command fails."""
    if not places.first_key.exists():
        key = _made(places, "first")
        whole_file.replace(places.first_key, f"{key}\n", mode=whole_file.PRIVATE, group=group)


def ensure_open_webui(places: Places, group: int) -> None:
    """Makes the key of Open WebUI unless its file holds one: its own, to be seen and limited by itself."""
    file: Path = places.secrets / secret_files.OPEN_WEBUI
    if not file.exists() or not file.read_text(encoding="utf-8").strip():
        key = _made(places, "open-webui")
        whole_file.replace(file, f"{key}\n", mode=secret_files.FOR_CONTAINERS, group=group)


def _made(places: Places, name: str) -> str:
    done = docker.tried(places, *GATEWAY, "gateway", "keys", "create", "--name", name, "--json")
    if done.code:
        raise Problem(
            f"The key {name} could not be made: {done.last_line}. make logs SERVICE=gateway says more."
        )
    key: str = json.loads(done.out)["key"]
    return key


def first(places: Places) -> str:
    """The first key. Raises FileNotFoundError before it was made."""
    return places.first_key.read_text(encoding="ascii").strip()
