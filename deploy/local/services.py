"""The three services of the stack, as programs: their arguments and the settings they get."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local.engines import Engine
from deploy.local.places import Places
from deploy.local.ports import Ports, loopback_addresses
from deploy.local.processes import outside_environment


@dataclass(frozen=True)
class Service:
    """One program. `stop_seconds` is how long it may take to stop before it is killed."""

    name: str
    argv: tuple[str, ...]
    settings: dict[str, str]
    stop_seconds: int
    # Stopped from high to low: the gateway drains while Caddy still passes on what it answers.
    order: int

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The whole environment it runs in; the operator's `GATEWAY_*` variables reach the gateway alone."""
        base = dict(environ) if self.name == "gateway" else outside_environment(environ)
        return {**base, **self.settings}


def of_stack(places: Places, ports: Ports, engine: Engine) -> list[Service]:
    """The stack's services in the order in which they start."""
    return [
        Service(
            "engine",
            tuple(engine.arguments(ports.engine)),
            dict(engine.settings),
            stop_seconds=engine.stop_seconds,
            order=100,
        ),
        Service(
            "caddy",
            (
                str(places.programs / "caddy"),
                "run",
                "--config",
                str(places.caddyfile),
                "--adapter",
                "caddyfile",
            ),
            caddy_settings(places, ports),
            stop_seconds=60,
            order=200,
        ),
        Service(
            "gateway",
            (str(places.programs / "gateway"), "serve"),
            gateway_settings(places, ports),
            # Longer than `drain_seconds` of its settings may well be.
            stop_seconds=120,
            order=300,
        ),
    ]


def caddy_settings(places: Places, ports: Ports) -> dict[str, str]:
    """What the Caddyfile reads from its environment."""
    return {
        "HTTPS_PORT": str(ports.https),
        "GATEWAY_PORT": str(ports.gateway),
        "BIND_ADDRESSES": " ".join(loopback_addresses()),
        "CADDY_STORAGE": str(places.caddy_storage),
    }


def gateway_settings(places: Places, ports: Ports) -> dict[str, str]:
    """The gateway's settings that the local mode decides; all others are the operator's."""
    return {
        "GATEWAY_CONFIG": os.environ.get("GATEWAY_CONFIG") or str(places.config),
        "GATEWAY_DATA_DIR": str(places.data),
        "GATEWAY_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(ports.gateway),
        "GATEWAY_OPS_HOST": "127.0.0.1",
        "GATEWAY_OPS_PORT": str(ports.ops),
    }


def save(wanted: list[Service], file: Path) -> None:
    """Writes what `launch` reads. No secret is in it: those stay in the environment."""
    file.write_text(json.dumps([asdict(service) for service in wanted], indent=1), encoding="utf-8")


def load(file: Path) -> dict[str, Service]:
    """The services that were written, by name."""
    found = [
        Service(**{**item, "argv": tuple(item["argv"])})
        for item in json.loads(file.read_text(encoding="utf-8"))
    ]
    return {service.name: service for service in found}
