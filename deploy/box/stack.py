"""`make up` and `make down` with Docker: from what is on this machine to a line that can be pasted."""

import os
import time
from collections.abc import Mapping

import httpx
from rich.markup import escape

from deploy.box import (
    caller,
    containers,
    docker,
    edited,
    edited_env,
    first_run,
    images,
    keyring,
    machine,
    networks,
    preflight,
    secret_files,
    trust,
    variables,
)
from deploy.box.caller import Door
from deploy.box.containers import Container
from deploy.box.places import Places
from deploy.box.watch import Watch, log_lines
from deploy.local import locks
from deploy.local.problem import Problem
from deploy.local.progress import console, step

# A large model from a slow disk, and kernels that are compiled for it: compose.yaml gives it 20 minutes.
START_SECONDS = 1_800.0
GATEWAY_SECONDS = 120.0
# An authority in the world takes seconds, and a few minutes if a first try failed.
CERTIFICATE_SECONDS = 240.0
POLL_SECONDS = 1.0
DRAIN_SECONDS = 30


def up(places: Places, asked_profile: str = "") -> None:
    """Starts the stack, or what of it does not run, waits until it answers, and prints how it is called.

    Raises Problem: before anything was changed with all that stands in the way, later with what failed.
    """
    found = prepare(places, asked_profile)
    start(places, found)
    print(invitation(places, found))


def prepare(
    places: Places, asked_profile: str = "", environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The variables of this box; .env and what secrets/ lacks are written, once nothing is in the way."""
    seen = machine.look(places)
    found = variables.load(places)
    if not found and places.env_file.exists():
        raise Problem(f"{places.env_file} is there and says nothing: remove it, then make up.")
    planned = found or _planned(places, seen, asked_profile, environ)
    if "PROFILE" not in planned:
        raise Problem(f"{places.env_file} names no PROFILE: add it, or move that file away, then make up.")
    if found:
        edited_env.check(places, found)
    preflight.check(preflight.look(places, seen, planned))
    alert_url = environ.get("ALERT_URL", "")
    if found:
        for line in first_run.differences(found, environ):
            console().print(f"[yellow]![/yellow] {escape(line)}")
    else:
        planned, alert_url = first_run.asked_for(planned, environ)
        preflight.check(preflight.look(places, seen, planned))
    secret_files.ensure(places, planned, alert_url, environ)
    if not found:
        first_run.write(places, planned)
    return planned


def _planned(
    places: Places, seen: machine.Machine, asked_profile: str, environ: Mapping[str, str]
) -> dict[str, str]:
    project = environ.get("COMPOSE_PROJECT_NAME") or variables.PROJECT
    used = networks.in_use(places, project) if seen.docker else []
    return first_run.plan(first_run.profile(seen, asked_profile), used, environ)


def start(places: Places, found: Mapping[str, str]) -> None:
    """Brings the stack up as the checkout and .env describe it, and asks it one question."""
    project = variables.project(found)
    with locks.held(places.secrets / "stack", "starting this stack"):
        images.provide(places)
        running = containers.of_project(places, project)
        # One that .env describes anew gets a new container below.
        changed = [name for name in edited.services(places, running) if _as_described(places, running, name)]
        if ("vllm" in changed or not _engine_serves(places, running)) and _ready_engine(places, running):
            changed = [service for service in changed if service != "vllm"]
        if changed:
            console().print(f"  Their files were edited: restarting {', '.join(changed)} …")
            docker.show(places, "compose", "restart", *changed)
        _start_services(places, found, project)
        answers(places, found)


def _engine_serves(places: Places, running: Mapping[str, Container]) -> bool:
    """Whether the engine is well and is the one that the files describe."""
    return "vllm" in running and running["vllm"].well and _as_described(places, running, "vllm")


def _as_described(places: Places, running: Mapping[str, Container], service: str) -> bool:
    """Whether a container was made by what compose.yaml and .env say now."""
    told = docker.answer(places, "compose", "config", "--hash", service).split()
    return told[-1:] == [running[service].config_hash]


def _ready_engine(places: Places, running: Mapping[str, Container]) -> bool:
    """Its weights on this disk, the notes of its failed starts gone: whoever runs make up has mended it.

    Says whether it was restarted, because it waited before another try.
    """
    terminal = () if os.isatty(0) and os.isatty(1) and os.isatty(2) else ("-T",)
    docker.show(places, *docker.with_setup(places), "run", "--rm", *terminal, "weights")
    notes = ("run", "--rm", "--no-deps", "-T", "--entrypoint", "rm", "vllm", "-rf", "/cache/starts")
    docker.answer(places, "compose", *notes, seconds=300)
    waits = "vllm" in running and running["vllm"].running and _sleeps(places)
    if waits:
        docker.show(places, "compose", "restart", "--no-deps", "vllm")
    return waits


def _sleeps(places: Places) -> bool:
    """Whether its start script waits before another try; once it serves, the server has taken its place."""
    told = docker.tried(places, "compose", "exec", "-T", "vllm", "cat", "/proc/1/comm")
    return told.out.strip() == "sh"


def _start_services(places: Places, found: Mapping[str, str], project: str) -> None:
    watch, group = Watch(places, project), variables.group(found)
    # It needs no engine, and the keys that others need come from it.
    docker.show(places, "compose", "up", "-d", "--no-build", "gateway")
    with step("Starting the gateway") as progress:
        watch.until_well(["gateway"], progress, GATEWAY_SECONDS)
    keyring.ensure_first(places, group)
    if secret_files.uses_open_webui(found):
        keyring.ensure_open_webui(places, group)
    docker.show(places, "compose", "up", "-d", "--no-build", "--remove-orphans")
    services = docker.answer(places, "compose", "config", "--services").split()
    with step("Starting all services: the engine loads its model (minutes)") as progress:
        watch.until_well(services, progress, START_SECONDS)
    trust.export(places)


def answers(places: Places, found: Mapping[str, str]) -> None:
    """Returns once the box has answered a question as callers ask it. Raises Problem if it does not.

    A first key that is not accepted any more is said, and no failure.
    """
    at, deadline = caller.door(places, found), time.monotonic() + CERTIFICATE_SECONDS
    with step(f"Asking {at.base_url} a question") as progress:
        while True:
            status, said = _asked(at, keyring.first(places))
            if status == 200:
                return
            if status == 401:
                _tell_lost_key(places)
                return
            if status not in {0, 502, 503} or time.monotonic() > deadline:
                break
            progress.note(said)
            time.sleep(POLL_SECONDS)
    service = "caddy" if at.name and not status else "gateway"
    lines = log_lines(places, service, 8)
    raise Problem(
        "\n    ".join([f"{at.base_url} does not answer: {said} The last lines of {service}:", *lines])
    )


def _asked(at: Door, key: str) -> tuple[int, str]:
    try:
        answer = caller.ask(at, key)
    except httpx.TransportError as error:
        return 0, f"{error}."
    return answer.status_code, f"{answer.status_code} {answer.text[:200]}."


def _tell_lost_key(places: Places) -> None:
    console().print(
        f"[yellow]![/yellow] The key in {escape(str(places.first_key))} is not accepted any more: write the "
        "rotated key into that file, or remove it and run make up again for a new one."
    )


def invitation(places: Places, found: Mapping[str, str]) -> str:
    """What `make up` prints: the base URL, the models, Grafana, and a line that answers when it is pasted."""
    at = caller.door(places, found)
    lines = [
        "",
        f"Base URL: {at.base_url}",
        f"Models: {models(places, at)}",
        f"Grafana: {found['SITE_URL']}/grafana/ (admin, password: {places.secrets.name}/grafana-password)",
    ]
    if secret_files.uses_open_webui(found):
        lines.append(f"Open WebUI: http://{caller.LOOPBACK}:{found.get('OPEN_WEBUI_PORT') or 3001}")
    if at.own_authority and at.name:
        lines.append(
            f"Its certificate is from this box's own authority, {places.secrets.name}/ca.crt: docs/tls.md"
        )
        lines.append("shows how clients trust it.")
    return "\n".join([*lines, "", "In this folder:", "", caller.line(at, places)])


def models(places: Places, at: Door) -> str:
    """What callers may write as model, or why that is not known."""
    try:
        answer = caller.call(at, "/v1/models", key=keyring.first(places))
    except (httpx.TransportError, FileNotFoundError) as error:
        return f"({error})"
    if answer.status_code != 200:
        return f"(the gateway says {answer.status_code})"
    return ", ".join(model["id"] for model in answer.json()["data"])


def down(places: Places) -> None:
    """Stops the stack and removes its containers; volumes and secrets stay. Calls under way may finish."""
    with step(f"Stopping the gateway: running calls may take up to {DRAIN_SECONDS} s to end"):
        # First of all: its streams end while Caddy still passes them on.
        docker.answer(places, "compose", "stop", "gateway", seconds=None)
    docker.show(places, *docker.with_setup(places), "down", "--remove-orphans")
