"""`make model` without Docker: another model for the local engine; the one before if it does not start."""

import os
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
    hub,
    locks,
    model_block,
    models,
    planned,
    ports,
    probe,
    services,
    stack,
    supervision,
)
from deploy.local.chosen_model import BUILT_IN, Chosen
from deploy.local.places import Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem
from deploy.local.processes import tail
from deploy.local.progress import console, step
from deploy.local.watch import Watch
from gateway.planner import hardware, profile
from gateway.planner.plan import Options, Plan
from gateway.planner.source import Model
from gateway.planner.units import GIB, gb

SEQS = 32
# Of the machine's memory: gateway, Caddy and the operator have the rest.
MEMORY_SHARE = 0.8
RELOAD_SECONDS = 30.0
ANSWER_SECONDS = 180.0
SPARE_BYTES = 1_000_000_000
LOG_LINES = 400
# What of a plan the local engine is told: the rest is as all its models are served.
PASSED_ON = ("max-model-len", "language-model-only", "reasoning-parser", "tool-call-parser")
# As a profile names its engine.
PLANNED_URL = "http://vllm:8000"


def change(places: Places, wanted: str, *, back: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Plans a model, fetches it while the old one serves, restarts the engine, asks the new one a question.

    Nothing runs: it is written down, and `make up` starts it. Raises Problem: before anything is changed if
    the model cannot be had or does not fit, else once the old one is back.
    """
    before = chosen_model.now(places.model)
    target = _before(places) if back else _planned(wanted, environ)
    stack.prepare_folders(places)
    with locks.held(places.run, "changing the model"):
        running = supervision.running(places)
        name = engines.recorded(places.engine) if running else engines.choose(environ).name
        if name == "llamacpp" and target.folder:
            raise Problem(
                "llama.cpp runs here, and it serves its own model alone: ENGINE=vllm, or a GPU box."
            )
        if not running:
            _keep(places, target, before)
            print(f"Nothing runs here: {target.id} is what make up starts from now on.")
            return
        _own_settings(places)
        _change(places, target, before)


def _before(places: Places) -> Chosen:
    if found := chosen_model.before(places.model):
        return found
    raise Problem("there is no model before this one: BACK=1 returns from the last make model MODEL=…")


def _planned(wanted: str, environ: Mapping[str, str]) -> Chosen:
    if wanted.strip().lower() in {BUILT_IN.id, models.HUB_REPOSITORY.lower()}:
        return BUILT_IN
    token = environ.get("HF_TOKEN", "")
    model = planned.find(wanted, token, "HF_TOKEN", environ)
    cache_bytes = int(float(environ.get("VLLM_CPU_KVCACHE_SPACE", "1")) * GIB)
    options = Options(kv_cache_bytes=cache_bytes, max_num_seqs=SEQS)
    machine = replace(hardware.find("cpu"), utilization=MEMORY_SHARE)
    plan = planned.fitting(model, machine, options)
    _tell(plan)
    return _of_plan(plan, _folder(model, token, environ))


def _tell(plan: Plan) -> None:
    console().print(
        f"  {escape(plan.model.name)} fits: {gb(plan.model.weights.bytes)} of weights, context "
        f"{plan.cache.engine.max_model_len:,} (computed)."
    )


def _folder(model: Model, token: str, environ: Mapping[str, str]) -> Path:
    if Path(model.repository).is_dir():
        return Path(model.repository).resolve()
    hub.check(model.repository, token, environ)
    return models.of_hub(model.repository, model.weights.bytes + SPARE_BYTES)


def _of_plan(plan: Plan, folder: Path) -> Chosen:
    values = {flag.name: flag.value for flag in plan.flags}
    flags = [
        word
        for name in PASSED_ON
        if name in values
        for word in ([f"--{name}"] if values[name] is True else [f"--{name}", str(values[name])])
    ]
    text = profile.gateway_file(plan, "local")
    most = max(1, plan.cache.engine.max_model_len // 2)
    block = model_block.of_engine(text, PLANNED_URL)
    return Chosen(str(values["served-model-name"]), str(folder), tuple(flags), block, most)


def _own_settings(places: Places) -> None:
    """Raises Problem if the gateway that runs reads a file of the operator's elsewhere."""
    running = services.load(places.checkout / supervision.SERVICES)["gateway"]
    file = running.settings["GATEWAY_CONFIG"]
    if Path(file) != places.config:
        raise Problem(
            f"the gateway reads {file}, as GATEWAY_CONFIG says: make model changes no file of yours."
        )


def _keep(places: Places, target: Chosen, before: Chosen) -> None:
    """Writes down both, with what the gateway's settings say of the old one by now."""
    if target.id == before.id and target.folder == before.folder:
        before = chosen_model.before(places.model) or before
    elif (port := configuration.engine_port(places.config)) is not None:
        text = places.config.read_text(encoding="utf-8")
        said = model_block.of_engine(text, chosen_model.address(port))
        before = replace(before, block=said or before.block)
    chosen_model.save(places.model, target, before)


def _change(places: Places, target: Chosen, before: Chosen) -> None:
    at = ports.load(places.run / "ports.json")
    kept = {file: file.read_bytes() if file.exists() else None for file in (places.config, places.model)}
    # First of all: what is wrong with its folder is said before the old one is stopped.
    engines.prepare("vllm", target)
    _keep(places, target, before)
    try:
        _serve(places, target, at)
        answer = _answer(places, at)
    except Problem as problem:
        died = planned.why_it_died("\n".join(tail(supervision.log_file(places, "engine"), LOG_LINES)))
        console().print(f"[red]✗[/red] {escape(target.id)} did not come up. Going back to {before.id} …")
        why = "\n  - ".join([str(problem), *died])
        _return(places, before, at, kept, why)
        raise Problem(f"{target.id} did not come up, and {before.id} serves again. {why}") from problem
    print(
        f"{target.id} serves now, to callers of `default` too. Asked for the capital of France it says: "
        f"{answer}"
    )
    if chosen_model.before(places.model) != target:
        print(f"{chosen_model.BACK} returns to {before.id}.")


def _return(places: Places, before: Chosen, at: Ports, kept: Mapping[Path, bytes | None], why: str) -> None:
    for file, content in kept.items():
        file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
    try:
        _serve(places, before, at)
    except Problem as second:
        raise Problem(f"neither it nor, again, {before.id} came up. {why}\n{before.id}: {second}") from second


def _serve(places: Places, chosen: Chosen, at: Ports) -> None:
    """The engine with that model, and a gateway that knows it. Raises Problem if one of them fails."""
    engine = engines.prepare("vllm", chosen)
    file = places.checkout / supervision.SERVICES
    with step("Stopping the engine: running calls may finish first"):
        supervision.stop_service(places, "engine")
    chosen_model.name_in(places.config, chosen, at.engine)
    known = services.load(file)
    known["engine"] = next(one for one in services.of_stack(places, at, engine) if one.name == "engine")
    services.save(list(known.values()), file)
    watch = Watch(places)
    os.kill(supervision.states(places)["gateway"].process, signal.SIGHUP)
    supervision.start_service(places, "engine")
    with step(f"Starting the engine with {chosen.id} (a minute at most, for a small model)") as progress:
        watch.until(lambda: _knows(places, at, chosen.id), progress, RELOAD_SECONDS)
        for url in (f"http://127.0.0.1:{at.engine}/health", f"http://127.0.0.1:{at.ops}/readyz"):
            watch.until(partial(_well, url), progress, stack.ENGINE_START_SECONDS)


def _well(url: str) -> bool:
    return probe.get(url).status == 200


def _knows(places: Places, at: Ports, model: str) -> bool:
    """Whether the gateway has loaded settings with that model. Without a key that works nobody can ask."""
    answer = probe.get(f"http://127.0.0.1:{at.gateway}/v1/models", key=first_key.read(places))
    return answer.status == 401 or f'"{model}"'.encode() in answer.body


def _answer(places: Places, at: Ports) -> str:
    """The first line of an answer, as callers get it. Raises Problem if there is none."""
    body = {"model": "default", "messages": [{"role": "user", "content": stack.PROMPT}], "max_tokens": 32}
    answer = httpx.post(
        f"http://127.0.0.1:{at.gateway}/v1/chat/completions",
        headers={"Authorization": f"Bearer {first_key.read(places)}"},
        json=body, timeout=ANSWER_SECONDS, trust_env=False,
    )  # fmt: skip
    if answer.status_code == 401:
        return "(the first key is not accepted any more, so it was not asked)"
    if answer.status_code != 200:
        raise Problem(f"It starts, and does not answer: {answer.status_code} {answer.text[:300]}")
    message = answer.json()["choices"][0]["message"]
    said = (message.get("content") or message.get("reasoning") or "").strip() or "(nothing)"
    return repr(said.splitlines()[0])[1:-1]
