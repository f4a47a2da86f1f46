"""Asks addresses that only the stack's own networks reach, from within the gateway's container."""

import json
from collections.abc import Sequence

from deploy.box import docker
from deploy.box.places import Places
from deploy.local.probe import Answer
from gateway.doctor.look.inside import PROGRAM


def get(places: Places, urls: Sequence[str]) -> list[Answer]:
    """What each address answers; status 0 and the reason where nobody does."""
    done = docker.tried(places, "compose", "exec", "-T", "gateway", "python3", "-c", PROGRAM, *urls)
    if done.code:
        return [Answer(0, done.last_line.encode()) for _ in urls]
    return [Answer(status, body.encode()) for status, body in json.loads(done.out)]
