"""`make status` and `make logs`: what runs, whether it is well, and what it writes."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deploy.local import configuration, engines, first_key, health, ports, probe, services, supervision
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem

LINES = "40"
NOT_RUNNING = "The stack is not running: make up starts it."


def status(places: Places) -> bool:
    """Prints the services, their health, the model and the addresses.

    Answers whether all is well; a stack that was not started is.
    """
    if not supervision.running(places):
        print(NOT_RUNNING)
        return True
    at = ports.load(places.run / "ports.json")
    found = health.of_stack(places, at)
    table = Table("service", "state", "process", "up", "health", box=None, pad_edge=False)
    for name, state in supervision.states(places).items():
        well = found[name] if state.state == "RUNNING" else state.cause
        table.add_row(name, state.state.lower(), str(state.process or ""), _duration(state.up_seconds), well)
    Console(highlight=False).print(table)
    print(f"\nBase URL: {at.base_url}\nModels: {_models(places, at)}")
    print(f"Engine: {engines.TITLES[engines.recorded(places.engine)]}")
    print(f"Metrics: http://127.0.0.1:{at.ops}/metrics\nSettings: {_settings(places)}")
    return all(word == health.OK for word in found.values())


def _models(places: Places, at: Ports) -> str:
    if not places.first_key.exists():
        return "(no first key)"
    answer = probe.get(f"http://127.0.0.1:{at.gateway}/v1/models", key=first_key.read(places))
    if answer.status == 401:
        return f"(the key in {places.first_key} is not accepted any more)"
    if answer.status != 200:
        return f"(the gateway says {answer.status})"
    names = [model["id"] for model in json.loads(answer.body)["data"]]
    return "; ".join(_with_aliases(names, configuration.aliases(_settings(places))))


def _with_aliases(names: list[str], aliases: Mapping[str, list[str]]) -> list[str]:
    known = {alias for of_model in aliases.values() for alias in of_model}
    lines = []
    for name in names:
        if name not in known:
            also = ", ".join(aliases.get(name, []))
            lines.append(f"{name} (alias: {also})" if also else name)
    return lines or names


def _settings(places: Places) -> Path:
    gateway = services.load(places.checkout / supervision.SERVICES)["gateway"]
    return Path(gateway.settings["GATEWAY_CONFIG"])


def _duration(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


def follow(places: Places, service: str | None) -> None:
    """Becomes `tail -F` on the logs of one service or of all; of a stack that is down, prints their ends.

    Raises Problem for a name that is none.
    """
    files = _logs(places, service)
    if supervision.running(places):
        os.execvp("tail", ["tail", "-n", LINES, "-F", *files])  # noqa: S606
    subprocess.run(
        ["tail", "-n", LINES, *filter(os.path.exists, files)], stdin=subprocess.DEVNULL, check=False
    )
    print(f"\n{NOT_RUNNING}")


def _logs(places: Places, service: str | None) -> list[str]:
    file = places.checkout / supervision.SERVICES
    known = list(services.load(file)) if file.exists() else []
    if not known:
        raise Problem("There are no logs yet: make up writes them.")
    if service and service not in known:
        raise Problem(f"There is no service {service}: SERVICE is one of {', '.join(known)}.")
    return [str(supervision.log_file(places, name)) for name in ([service] if service else known)]
