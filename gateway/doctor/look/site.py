"""What kind of place this is: a box with the compose stack, the local mode, or a gateway alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Literal

from dotenv import dotenv_values

from gateway.doctor.look import regular

Kind = Literal["box", "local", "alone"]
OPS_OF_BOX = "http://gateway-ops:8081"
PROMETHEUS_OF_BOX = "http://prometheus-ops:9090"
WITHOUT_GPU = "cpu"


@dataclass(frozen=True)
class Site:
    """Where things lie. `environ`: what the gateway is started with there; `variables`: those of .env."""

    kind: Kind
    folder: Path
    environ: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None
    profile: Path | None = None
    log: Path | None = None
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def checkout(self) -> bool:
        """Whether the stack's files are here."""
        return (self.folder / "compose.yaml").is_file() and (self.folder / "deploy").is_dir()

    @property
    def off(self) -> bool:
        """Whether a proxy of the operator's own stands in Caddy's place."""
        return self.variables.get("SITE") == "off"


def find(folder: Path, environ: Mapping[str, str]) -> Site:
    """The place that a folder is."""
    variables = _variables(folder / ".env")
    if (folder / "compose.yaml").is_file() and variables.get("PROFILE"):
        return _box(folder, environ, variables)
    config = folder / "data" / "gateway.toml"
    if "GATEWAY_CONFIG" not in environ and not (folder / "gateway.toml").exists() and config.is_file():
        return _local(folder, environ, config)
    return Site("alone", folder, environ)


def _box(folder: Path, environ: Mapping[str, str], variables: Mapping[str, str]) -> Site:
    # The stack's gateway gets nothing of this shell.
    own = {name: value for name, value in environ.items() if not name.startswith("GATEWAY_")}
    config = variables.get("GATEWAY_CONFIG_FILE")
    profile = variables.get("PROFILE_FILE")
    return Site(
        kind="box",
        folder=folder,
        environ=own,
        variables=variables,
        config=folder / config if config else None,
        profile=folder / profile if profile else None,
    )


def _local(folder: Path, environ: Mapping[str, str], config: Path) -> Site:
    own = {**environ, "GATEWAY_DATA_DIR": environ.get("GATEWAY_DATA_DIR") or str(folder / "data")}
    log = folder / "data" / "log" / "engine.log"
    ports = _ports(folder / "data" / "run" / "ports.json")
    return Site("local", folder, own, config=config, log=log if log.is_file() else None, ports=ports)


def _ports(file: Path) -> Mapping[str, int]:
    try:
        found = json.loads(regular.text(file))
    except (OSError, ValueError, RecursionError):
        return {}
    return (
        {name: port for name, port in found.items() if isinstance(port, int)}
        if isinstance(found, dict)
        else {}
    )


def _variables(file: Path) -> Mapping[str, str]:
    try:
        found = dotenv_values(stream=StringIO(regular.text(file)), interpolate=False)
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value for name, value in found.items() if value is not None}
