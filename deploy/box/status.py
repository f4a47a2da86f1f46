"""`make status` and `make logs` with Docker: what runs, whether it is well, and what it writes."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deploy.box import caller, containers, docker, inside, machine, stack, variables
from deploy.box.containers import Container
from deploy.box.places import Places
from deploy.local.probe import Answer
from deploy.local.problem import Problem

NOT_RUNNING = "The stack is not running: make up starts it."
LINES = "40"
WIDTH = 160
READY = "http://gateway-ops:8081/readyz"
METRICS = "http://gateway-ops:8081/metrics"
ALERTS = "http://prometheus-ops:9090/api/v1/alerts"


def status(places: Places) -> bool:
    """Prints the services, the GPU, engine, key store, alerts, disk and certificate.

    Answers whether all is well; a stack that was not started is.
    """
    found = variables.load(places)
    running = containers.of_project(places, variables.project(found))
    if not any(one.running for one in running.values()):
        print(NOT_RUNNING)
        return True
    wanted = docker.answer(places, "compose", "config", "--services").split()
    # Whole lines for a file or another program, whatever a terminal's width would be.
    out = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    out.print(_services(sorted({*wanted, *running}), running))
    ready, metrics, alerts = inside.get(places, [READY, METRICS, ALERTS])
    rows = Table("", "", box=None, pad_edge=False, show_header=False)
    for name, value in _facts(places, found, ready, metrics, alerts):
        rows.add_row(name, escape(value))
    out.print()
    out.print(rows)
    well = all(service in running and running[service].well for service in wanted)
    return well and ready.status == 200


def _services(names: list[str], running: Mapping[str, Container]) -> Table:
    table = Table("service", "state", "health", "up", "restarts", "image", box=None, pad_edge=False)
    for name in names:
        if name not in running:
            table.add_row(name, "[red]not there[/red]", "", "", "", "")
            continue
        one = running[name]
        state = one.state if one.running else f"[red]{one.state} ({one.exit_code})[/red]"
        health = one.health if one.well else f"[red]{one.health or '?'}[/red]"
        table.add_row(name, state, health, _up(one), str(one.restarts or ""), one.image)
    return table


def _up(one: Container) -> str:
    if not one.running:
        return ""
    minutes = int((datetime.now(UTC) - datetime.fromisoformat(one.started)).total_seconds()) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"


def _facts(
    places: Places, found: Mapping[str, str], ready: Answer, metrics: Answer, alerts: Answer
) -> Iterator[tuple[str, str]]:
    at = caller.door(places, found)
    yield "Base URL", at.base_url
    yield "Models", stack.models(places, at)
    yield "Profile", _profile(found)
    seen = machine.look(places)
    for gpu in seen.gpus:
        total = f" of {gpu.memory / 1024:.0f}" if gpu.memory else ""
        used = (
            f", {gpu.used / 1024:.1f}{total} GiB used" if gpu.used is not None else ", memory is the system's"
        )
        yield "GPU", f"{gpu.name}{used}, driver {'.'.join(map(str, gpu.driver))}"
    yield "Engine", "ready" if ready.status == 200 else ready.body.decode(errors="replace")
    yield "Key store", _key_store(metrics)
    yield "Alerts", _firing(alerts)
    yield "Disk", "; ".join(_disks(found, seen.data_root))
    if at.name:
        yield "Certificate", f"of {at.name}: {caller.certificate_end(at)}"


def _profile(found: Mapping[str, str]) -> str:
    """Its name, and the engine's file where that is another than the profile's own."""
    name, file = found["PROFILE"], found.get("PROFILE_FILE", "").removeprefix("./")
    return name if file == f"deploy/profiles/{name}.yaml" else f"{name} ({file})"


def _key_store(metrics: Answer) -> str:
    if metrics.status != 200:
        return f"not known: {metrics.body.decode(errors='replace')[:120]}"
    up = b"\ngateway_key_store_up 1" in b"\n" + metrics.body
    return "ok" if up else "cannot be read: docs/operate.md#keys"


def _firing(alerts: Answer) -> str:
    if alerts.status != 200:
        return f"not known: Prometheus says {alerts.body.decode(errors='replace')[:120]}"
    found = json.loads(alerts.body)["data"]["alerts"]
    firing = sorted({alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"})
    return f"firing: {', '.join(firing)} (docs/runbooks/)" if firing else "none"


def _disks(found: Mapping[str, str], data_root: Path | None) -> Iterator[str]:
    for folder in filter(None, [data_root, Path(found["WEIGHTS_DIR"]) if found.get("WEIGHTS_DIR") else None]):
        if folder.exists():
            usage = shutil.disk_usage(folder)
            yield f"{folder}: {usage.free / 1e9:.0f} of {usage.total / 1e9:.0f} GB free"


def follow(places: Places, service: str) -> None:
    """Becomes `docker compose logs -f` on one service or all; of a stack that is down, prints what is left.

    Raises Problem for a name that is none.
    """
    known = docker.answer(places, *docker.with_setup(places), "config", "--services").split()
    if service and service not in known:
        raise Problem(f"There is no service {service}: SERVICE is one of {', '.join(sorted(known))}.")
    running = containers.of_project(places, variables.project(variables.load(places)))
    if not running:
        print(NOT_RUNNING)
        return
    following = ["-f"] if any(one.running for one in running.values()) else []
    argv = ["docker", "compose", "logs", *following, "--tail", LINES, *([service] if service else [])]
    os.chdir(places.checkout)
    os.execvpe("docker", argv, docker.environment())  # noqa: S606
