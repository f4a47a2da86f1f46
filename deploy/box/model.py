"""`make model` with Docker: another model for the engine, and the one before again if it does not come up."""

import os
from collections.abc import Mapping
from pathlib import Path

import httpx
from rich.markup import escape

from deploy.box import caller, containers, docker, keyring, machine, own_profile, stack, variables
from deploy.box.own_profile import Files
from deploy.box.places import Places
from deploy.box.watch import log_lines
from deploy.local import locks, planned, question, way_back
from deploy.local.problem import Problem
from deploy.local.progress import console
from deploy.local.way_back import Change
from gateway.planner.plan import Plan
from gateway.planner.units import gb

TOKEN = "hf-token"  # noqa: S105  the name of its file
LOG_LINES = 600


def change(places: Places, wanted: str, *, back: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Plans a model, writes its profile, downloads it while the old one serves, restarts, asks it a question.

    Nothing runs: the profile is written, and `make up` starts it. Raises Problem: before anything is changed
    if the model cannot be had or does not fit, else once the old one is back.
    """
    with locks.held(places.secrets / "model", "changing the model"):
        found = variables.load(places)
        before = Files.named(found)
        running = containers.of_project(places, variables.project(found))
        target, written = _back(places, found) if back else _planned(places, found, wanted, environ)
        if any(one.running for one in running.values()):
            _download(places, target, written)
            _switch(places, found, target)
            _start(places, found, before)
        else:
            _switch(places, found, target)
            print(f"Nothing runs here: {target.engine} is what make up starts from now on.")


def _back(places: Places, found: Mapping[str, str]) -> tuple[Files, list[Path]]:
    target = Files.named(found, "BACK_")
    if not target.engine or not target.gateway:
        raise Problem("there is no model before this one: BACK=1 returns from the last make model MODEL=…")
    if missing := target.missing(places):
        raise Problem(f"{missing[0]}, the profile before, is gone: make model MODEL=… makes another.")
    return target, []


def _planned(
    places: Places, found: Mapping[str, str], wanted: str, environ: Mapping[str, str]
) -> tuple[Files, list[Path]]:
    model = planned.find(wanted, _token(places, environ), f"{places.secrets.name}/{TOKEN}", environ)
    card = own_profile.hardware_of(places, machine.look(places), found)
    options = own_profile.options(places, card, found)
    plan = planned.fitting(own_profile.in_container(model, found), card, options)
    _tell(plan)
    target, written = own_profile.provide(places, plan, found)
    if not written:
        console().print(f"  {target.engine} is there already, and is taken as it is.")
    return target, written


def _token(places: Places, environ: Mapping[str, str]) -> str:
    file = places.secrets / TOKEN
    kept = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return kept or environ.get("HF_TOKEN", "")


def _tell(plan: Plan) -> None:
    cache = plan.cache
    console().print(
        f"  {escape(plan.model.name)} fits: {gb(plan.model.weights.bytes)} of weights, context "
        f"{cache.engine.max_model_len:,}, {cache.max_concurrency:.1f} requests of that length at once "
        "(estimated: the engine measures its memory at start)."
    )


def _download(places: Places, target: Files, written: list[Path]) -> None:
    """All of the new model on the disk. Raises Problem if it cannot be had: then nothing was changed."""
    terminal = () if os.isatty(0) and os.isatty(1) and os.isatty(2) else ("-T",)
    command = (*docker.with_setup(places), "run", "--rm", *terminal, "weights")
    try:
        docker.show(places, *command, instead={"PROFILE_FILE": target.engine})
    except BaseException as error:
        for file in written:
            file.unlink()
        if not isinstance(error, Problem):
            raise
        raise Problem(
            "the model cannot be had: the reason stands above. Nothing was changed, the model before goes on "
            "serving; the same command again goes on where this stopped."
        ) from error


def _switch(places: Places, found: Mapping[str, str], target: Files) -> None:
    """Points .env at the new files, and what BACK=1 returns to at the old ones."""
    before = Files.named(found)
    if target != before:
        variables.change(places, {**target.variables(), **before.variables("BACK_")})


def _start(places: Places, found: Mapping[str, str], before: Files) -> None:
    now = variables.load(places)
    try:
        stack.start(places, now)
    except BaseException as trouble:
        if Files.named(now) != before:
            _return(places, found, trouble)
        raise
    print(f"{_title(now)} serves now, to callers of `default` too. {_said(places, now)}")
    if Files.named(now) != before:
        print(f"make model BACK=1 returns to {_title(found)}.")


def _title(found: Mapping[str, str]) -> str:
    return found["PROFILE_FILE"].removeprefix("./")


def _said(places: Places, found: Mapping[str, str]) -> str:
    """What it answers, as callers get it."""
    try:
        answer = caller.ask(caller.door(places, found), keyring.first(places))
    except (httpx.HTTPError, OSError) as error:
        return f"(no answer to show: {error})"
    if answer.status_code != 200:
        return f"(no answer to show: status {answer.status_code})"
    return question.told(answer.json())


def _return(places: Places, found: Mapping[str, str], trouble: BaseException) -> None:
    """The model before, again, whatever went wrong. Raises Problem with that, if it is the model's."""
    name = _title(variables.load(places))
    more = (
        f"\n  `.venv/bin/gateway doctor --before --profile {name}` says more. Edit that file, then the same "
        "command again."
    )

    def restart() -> None:
        backs = Files.named(found, "BACK_").variables("BACK_")
        variables.change(places, {**Files.named(found).variables(), **backs})
        stack.start(places, variables.load(places))

    change = Change(name, _title(found), "make up", more)
    way_back.take(change, trouble, lambda: "\n".join(log_lines(places, "vllm", LOG_LINES)), restart)
