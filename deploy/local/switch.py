"""The engine that runs, with another model: its restart, one question, and the one before if that fails."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
from rich.markup import escape

from deploy.local import (
    chosen_model,
    configuration,
    engines,
    first_key,
    model_block,
    ports,
    probe,
    question,
    services,
    stack,
    supervision,
    way_back,
)
from deploy.local.chosen_model import Chosen
from deploy.local.engines import Engine
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem
from deploy.local.processes import tail
from deploy.local.progress import step
from deploy.local.watch import Watch
from deploy.local.way_back import Change

RELOAD_SECONDS = 30.0
ANSWER_SECONDS = 180.0
LOG_LINES = 400


def to(places: Places, name: engines.Name, target: Chosen, before: Chosen) -> None:
    """Restarts the engine with another model, and asks it a question; with the one before if that fails.

    Raises Problem then, or what interrupted it, once the one before is back.
    """
    at = ports.load(places.run / "ports.json")
    # First of all: what is wrong with its folder is said before the old one is stopped.
    engine = engines.prepare(name, target)
    changed = (places.config, places.model, places.checkout / supervision.SERVICES)
    kept = {file: file.with_name(f".{file.name}.kept") for file in changed}
    try:
        _write(places, engine, target, before, at, kept)
        try:
            _restart(places, target, at)
            answer = _answer(places, at)
        except BaseException as trouble:
            _return(places, target, before, at, kept, trouble)
            raise
    finally:
        for copy in kept.values():
            copy.unlink(missing_ok=True)
    print(f"{target.id} serves now, to callers of `default` too. {answer}")
    if chosen_model.before(places.model) != target:
        print(f"{chosen_model.BACK} returns to {before.id}.")


def keep(places: Places, target: Chosen, before: Chosen) -> None:
    """Writes down both, with what the gateway's settings say of the old one by now."""
    if target.id == before.id and target.folder == before.folder:
        before = chosen_model.before(places.model) or before
    elif (port := configuration.engine_port(places.config)) is not None:
        text = places.config.read_text(encoding="utf-8")
        said = model_block.of_engine(text, chosen_model.address(port))
        before = replace(before, block=said or before.block)
    chosen_model.save(places.model, target, before)


def gateway(places: Places) -> int:
    """Its process. Raises Problem if there is none: a signal to process 0 would reach ourselves."""
    if process := supervision.states(places)["gateway"].process:
        return process
    raise Problem("the gateway does not run: make up starts it; make logs SERVICE=gateway says why.")


def _put_back(kept: Mapping[Path, Path]) -> None:
    for file, copy in kept.items():
        copy.replace(file) if copy.exists() else file.unlink(missing_ok=True)


def _write(
    places: Places, engine: Engine, target: Chosen, before: Chosen, at: Ports, kept: Mapping[Path, Path]
) -> None:
    """All that names the model, while the old one still serves. What fails here changes nothing."""
    try:
        # To put a copy back takes no room, whatever has filled the disk by then.
        for file, copy in kept.items():
            copy.unlink(missing_ok=True)
            if file.exists():
                shutil.copy2(file, copy)
        _name_everywhere(places, engine, target, before, at, kept)
    except OSError as error:
        raise Problem(f"{way_back.said(error)} Nothing was changed, and {before.id} serves on.") from error


def _name_everywhere(
    places: Places, engine: Engine, target: Chosen, before: Chosen, at: Ports, kept: Mapping[Path, Path]
) -> None:
    file = places.checkout / supervision.SERVICES
    try:
        keep(places, target, before)
        chosen_model.name_in(places.config, target, at.engine)
        known = services.load(file)
        known["engine"] = next(one for one in services.of_stack(places, at, engine) if one.name == "engine")
        services.save(list(known.values()), file)
    except BaseException:
        _put_back(kept)
        raise


def _return(
    places: Places, target: Chosen, before: Chosen, at: Ports, kept: Mapping[Path, Path],
    trouble: BaseException,
) -> None:  # fmt: skip
    """The model before, again, whatever went wrong. Raises Problem with that, if it is the model's."""

    def log() -> str:
        return "\n".join(tail(supervision.log_file(places, "engine"), LOG_LINES))

    def restart() -> None:
        _put_back(kept)
        _restart(places, before, at)

    way_back.take(Change(target.id, before.id, "make down, make up"), trouble, log, restart)


def _restart(places: Places, chosen: Chosen, at: Ports) -> None:
    """The engine with that model, and a gateway that knows it. Raises Problem if one of them fails."""
    process = gateway(places)
    with step("Stopping the engine: running calls may finish first"):
        supervision.stop_service(places, "engine")
    watch = Watch(places)
    os.kill(process, signal.SIGHUP)
    supervision.start_service(places, "engine")
    title = f"Starting the engine with {escape(chosen.id)} (a minute at most, for a small model)"
    with step(title) as progress:
        watch.until(lambda: _knows(places, at, chosen.id), progress, RELOAD_SECONDS)
        for url in (f"http://127.0.0.1:{at.engine}/health", f"http://127.0.0.1:{at.ops}/readyz"):
            watch.until(partial(_well, url), progress, stack.ENGINE_START_SECONDS)


def _well(url: str) -> bool:
    return probe.get(url).status == 200


def _knows(places: Places, at: Ports, model: str) -> bool:
    """Whether the gateway has loaded settings with that model. Without a key that works nobody can ask."""
    answer = probe.get(f"http://127.0.0.1:{at.gateway}/v1/models", key=_key(places))
    written = (json.dumps(model, ensure_ascii=ascii_alone).encode() for ascii_alone in (True, False))
    return answer.status == 401 or any(one in answer.body for one in written)


def _key(places: Places) -> str:
    """The first key; empty if its file was removed, as one that is not accepted any more may be."""
    return first_key.read(places) if places.first_key.exists() else ""


def _answer(places: Places, at: Ports) -> str:
    """What it answers, as callers get it. Raises Problem if it does not."""
    key = _key(places)
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{at.gateway}/v1/chat/completions",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            json=question.body(), timeout=ANSWER_SECONDS, trust_env=False,
        )  # fmt: skip
    except httpx.TimeoutException as error:
        raise Problem(f"It starts, and does not answer within {ANSWER_SECONDS:.0f} s.") from error
    except httpx.HTTPError as error:
        raise Problem(f"It starts, and does not answer ({error}).") from error
    if answer.status_code == 401:
        return "(The first key is not accepted any more, so it was not asked.)"
    if answer.status_code != 200:
        raise Problem(f"It starts, and does not answer: {answer.status_code} {answer.text[:300]}")
    return question.told(answer.json())
