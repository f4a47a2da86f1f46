"""`make up` and `make down`: the whole stack, from what is on this machine to a line that can be pasted."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from deploy.local import (
    authority,
    chosen_model,
    configuration,
    engines,
    first_key,
    health,
    locks,
    ports,
    preflight,
    probe,
    question,
    services,
    supervision,
    whole_file,
)
from deploy.local.engine import ServedModel
from deploy.local.engines import Engine
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem
from deploy.local.progress import console, step
from deploy.local.watch import Watch

ENGINE_START_SECONDS = 900.0
OTHERS_START_SECONDS = 60.0
# The gateway's own default of `server.drain_seconds`.
DRAIN_SECONDS = 30
DATA_BYTES = 200_000_000


def up(places: Places) -> None:
    """Starts the stack, or finds it running, waits until it answers, and prints how it is called.

    Raises Problem if it does not come up; what was started is stopped again then.
    """
    wanted = engines.choose()
    prepare_folders(places)
    with locks.held(places.run, "starting this stack"):
        if supervision.running(places):
            engine = engines.prepare(running_engine(places), chosen_model.now(places.model))
            _find_running(places)
        else:
            engine = _start_and_wait(places, wanted)
        at = ports.load(_ports_file(places))
        _write_base_url(places, at)
        accepted = _key_accepted(places, at)
    print(invitation(places, at, engine.model, with_call=accepted))


def running_engine(places: Places, environ: Mapping[str, str] = os.environ) -> engines.Name:
    """The engine of the stack that runs. Raises Problem if ENGINE says another."""
    running = engines.recorded(places.engine)
    if environ.get("ENGINE", running) not in {"", running}:
        raise Problem(f"The stack runs with {engines.TITLES[running]}: make down first, then the same again.")
    return running


def _find_running(places: Places) -> None:
    at = ports.load(_ports_file(places))
    # The bundle comes first: health is asked through Caddy too.
    if _exported(places) and health.all_well(places, at):
        first_key.ensure(places, at)
        console().print("Already running.")
        return
    watch = Watch(places)
    _revive(places)
    _wait(places, at, watch)


def _start_and_wait(places: Places, wanted: engines.Choice) -> Engine:
    if wanted.why:
        console().print(f"  {wanted.why}", markup=False)
    engine = engines.prepare(wanted.name, chosen_model.now(places.model))
    watch = Watch(places)
    try:
        _wait(places, _start(places, engine), watch)
    except BaseException:
        # Half a stack would only be in the way of the next try.
        with step("Stopping what was started") as progress:
            supervision.stop(places, progress)
        raise
    return engine


def _start(places: Places, engine: Engine) -> Ports:
    _clear(places)
    chosen = _choose_ports(places)
    configuration.write_if_absent(places.config, engine, chosen.engine)
    if left := configuration.suit(places.config, engine):
        console().print(f"[yellow]![/yellow] {escape(left)}")
    if places.model.exists():
        chosen_model.name_in(places.config, chosen_model.now(places.model), chosen.engine)
    ports.save(chosen, _ports_file(places))
    places.engine.write_text(f"{engine.name}\n", encoding="ascii")
    supervision.start(places, services.of_stack(places, chosen, engine))
    return chosen


def _clear(places: Places) -> None:
    if found := supervision.left_behind(places):
        with step(f"Stopping what an earlier run left behind: {', '.join(found)}") as progress:
            supervision.stop(places, progress)
    supervision.forget(places)


def _key_accepted(places: Places, at: Ports) -> bool:
    if accepted := first_key.accepted(places, at):
        return accepted
    console().print(
        f"[yellow]![/yellow] The key in {escape(str(places.first_key))} is not accepted any more: write the "
        f"rotated key into that file, or remove it and run make up again for a new one."
    )
    return False


def _write_base_url(places: Places, at: Ports) -> None:
    whole_file.replace(places.base_url, f"{at.base_url}\n", mode=whole_file.PUBLIC)


def prepare_folders(places: Places) -> None:
    """Makes the folders of the stack. Raises Problem if their disk has no room."""
    places.data.mkdir(mode=0o700, exist_ok=True)
    for folder in (places.run, places.logs):
        folder.mkdir(mode=0o700, exist_ok=True)
    preflight.check_space(places.data, DATA_BYTES)


def _choose_ports(places: Places) -> Ports:
    named = configuration.engine_port(places.config)
    wanted = replace(Ports(), engine=named) if named else Ports()
    chosen = ports.choose(wanted)
    for line in ports.moved(wanted, chosen):
        console().print(f"  {line}")
    if named and named != chosen.engine:
        configuration.move_engine(places.config, named, chosen.engine)
        console().print(f"  Changed the engine's address in {places.config}.")
    return chosen


def _ports_file(places: Places) -> Path:
    return places.run / "ports.json"


def _revive(places: Places) -> None:
    for state in supervision.states(places).values():
        if state.state not in {"RUNNING", "STARTING", "BACKOFF"}:
            supervision.start_service(places, state.name)


def _wait(places: Places, at: Ports, watch: Watch) -> None:
    with step("Starting gateway and Caddy") as progress:
        health = f"http://127.0.0.1:{at.gateway}/healthz"
        watch.until(lambda: probe.get(health).status == 200, progress, OTHERS_START_SECONDS)
        watch.until(lambda: _exported(places), progress, OTHERS_START_SECONDS)
        first_key.ensure(places, at)
    with step("Starting the engine: it loads the model (a minute at most, as a rule)") as progress:
        ready = f"http://127.0.0.1:{at.ops}/readyz"
        watch.until(lambda: probe.get(ready).status == 200, progress, ENGINE_START_SECONDS)
    through_caddy = f"https://localhost:{at.https}/healthz"
    if (answer := probe.get(through_caddy, roots=places.ca_bundle)).status != 200:
        raise Problem(f"{through_caddy} does not answer: {answer.body.decode(errors='replace')}")


def _exported(places: Places) -> bool:
    try:
        authority.export(places, authority.system_roots())
    except FileNotFoundError:
        return False
    return True


def down(places: Places) -> None:
    """Stops the stack and leaves no process of it; calls under way may finish first."""
    with step(f"Stopping the stack: running calls may take up to {DRAIN_SECONDS} s to end") as progress:
        supervision.stop(places, progress)


def invitation(places: Places, at: Ports, model: ServedModel, *, with_call: bool = True) -> str:
    """What `make up` prints: the base URL, the model, and a line that answers when it is pasted."""
    text = f"\nBase URL: {at.base_url}\nModel: {model.id} (alias: default)\n"
    return f"{text}\nIn this folder:\n\n{_call(places, at)}\n" if with_call else text


def _call(places: Places, at: Ports) -> str:
    data = places.data.relative_to(places.checkout)
    return (
        f"curl {_past_proxies()}--cacert {data / places.ca_bundle.name} {at.base_url}/chat/completions "
        f'-H "Authorization: Bearer $(cat {data / places.first_key.name})" '
        f"-H 'Content-Type: application/json' -d '{question.pasted()}'"
    )


def _past_proxies() -> str:
    named = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
    return "--noproxy localhost " if named & {name for name, value in os.environ.items() if value} else ""
