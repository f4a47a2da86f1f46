"""Which running services read files that were edited since they started: Compose compares settings alone."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.box import docker
from deploy.box.containers import Container
from deploy.box.places import Places


def services(places: Places, running: Mapping[str, Container]) -> list[str]:
    """Their names. An editor may have replaced a file, of which a container would see only the old one."""
    told: dict[str, Any] = json.loads(docker.answer(places, "compose", "config", "--format", "json"))
    secrets = {name: secret.get("file", "") for name, secret in told.get("secrets", {}).items()}
    return [
        name
        for name, service in told["services"].items()
        if name in running
        and running[name].running
        and _newest(_mounted(places, service, secrets)) > _started(running[name])
    ]


def _mounted(places: Places, service: Mapping[str, Any], secrets: Mapping[str, str]) -> Iterator[Path]:
    """What a service mounts of the checkout. Of the host it may mount anything: that is not configuration."""
    sources = [mount["source"] for mount in service.get("volumes") or [] if mount.get("type") == "bind"]
    sources += [secrets.get(secret["source"], "") for secret in service.get("secrets") or []]
    for source in map(Path, filter(None, sources)):
        if places.checkout in source.parents:
            yield from (source.rglob("*") if source.is_dir() else [source])


def _newest(files: Iterator[Path]) -> datetime:
    times = (file.stat().st_mtime for file in files if file.is_file() and file.suffix != ".pyc")
    return datetime.fromtimestamp(max(times, default=0), UTC)


def _started(container: Container) -> datetime:
    return datetime.fromisoformat(container.started)
