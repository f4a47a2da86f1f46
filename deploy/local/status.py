"""`make status` and `make logs`: what runs, whether it is well, and what it writes."""

import json
import os

from rich.console import Console
from rich.table import Table

from deploy.local import first_key, ports, probe, services, supervision
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem

LINES = "40"


def status(places: Places) -> bool:
    """Prints the services, their health, the model and the addresses. Answers whether all is well."""
    if not supervision.running(places):
        print("The stack is not running: make up starts it.")
        return False
    at = ports.load(places.run / "ports.json")
    health = _health(places, at)
    table = Table("service", "state", "process", "up", "health", box=None, pad_edge=False)
    for name, state in supervision.states(places).items():
        well = health[name] if state.state == "RUNNING" else state.cause
        table.add_row(name, state.state.lower(), str(state.process or ""), _duration(state.up_seconds), well)
    Console(highlight=False).print(table)
    print(
        f"\nBase URL: {at.base_url}\nModels: {_models(places, at)}\nMetrics: http://127.0.0.1:{at.ops}/metrics"
    )
    return all(found == "ok" for found in health.values())


def _health(places: Places, at: Ports) -> dict[str, str]:
    ready = probe.get(f"http://127.0.0.1:{at.ops}/readyz")
    caddy = probe.get(f"https://localhost:{at.https}/healthz", roots=places.ca_bundle)
    return {
        "engine": _word(probe.get(f"http://127.0.0.1:{at.engine}/health"), "loading, or not there"),
        "gateway": _word(ready, ready.body.decode(errors="replace")),
        "caddy": _word(caddy, caddy.body.decode(errors="replace")),
    }


def _word(answer: probe.Answer, otherwise: str) -> str:
    return "ok" if answer.status == 200 else otherwise


def _models(places: Places, at: Ports) -> str:
    if not places.first_key.exists():
        return "(no first key)"
    answer = probe.get(f"http://127.0.0.1:{at.gateway}/v1/models", key=first_key.read(places))
    if answer.status != 200:
        return f"(the gateway says {answer.status})"
    return ", ".join(model["id"] for model in json.loads(answer.body)["data"])


def _duration(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


def follow(places: Places, service: str | None) -> None:
    """Becomes `tail -F` on the logs of one service or of all. Raises Problem for a name that is none."""
    file = places.checkout / supervision.SERVICES
    known = list(services.load(file)) if file.exists() else []
    if not known:
        raise Problem("There are no logs yet: make up writes them.")
    if service and service not in known:
        raise Problem(f"There is no service {service}: SERVICE is one of {', '.join(known)}.")
    files = [str(supervision.log_file(places, name)) for name in ([service] if service else known)]
    os.execvp("tail", ["tail", "-n", LINES, "-F", *files])  # noqa: S606
