"""`make model` without Docker: another model for the local engine; the one before if it does not start."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from deploy.local import (
    chosen_model,
    engine,
    engines,
    locks,
    model_block,
    models,
    planned,
    services,
    stack,
    supervision,
    switch,
)
from deploy.local.chosen_model import BUILT_IN, Chosen
from deploy.local.places import Places
from deploy.local.problem import Problem
from deploy.local.progress import console
from gateway.planner import catalogue, hardware, profile
from gateway.planner.hardware import Hardware
from gateway.planner.plan import Options, Plan
from gateway.planner.source import Model
from gateway.planner.units import GIB, gb

# Of the machine's memory: gateway, Caddy and the operator have the rest.
MEMORY_SHARE = 0.8
SPARE_BYTES = 1_000_000_000
# What of a plan the local engine is told: the rest is as all its models are served.
PASSED_ON = ("max-model-len", "language-model-only", "reasoning-parser", "tool-call-parser")
CACHE = "VLLM_CPU_KVCACHE_SPACE"
# Where an operator puts the token of the hub.
KEPT_IN = "HF_TOKEN"


def change(places: Places, wanted: str, *, back: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Plans a model, fetches it while the old one serves, restarts the engine, asks the new one a question.

    Nothing runs: it is written down, and `make up` starts it. Raises Problem: before anything is changed if
    the model cannot be had or does not fit, else once the old one is back.
    """
    llamacpp = _engine(places, environ) == "llamacpp"
    target = _before(places) if back else _planned(wanted, environ, hub_too=not llamacpp)
    stack.prepare_folders(places)
    with locks.held(places.run, "changing the model"):
        before, name = chosen_model.now(places.model), _engine(places, environ)
        if name == "llamacpp" and target.folder:
            raise _llamacpp_alone()
        if not supervision.running(places):
            switch.keep(places, target, before)
            print(f"Nothing runs here: {target.id} is what make up starts from now on.")
        elif name == "llamacpp":
            print(f"{target.id} is served already: llama.cpp serves no other model here.")
        else:
            _own_settings(places)
            switch.to(places, name, target, before)


def _engine(places: Places, environ: Mapping[str, str]) -> engines.Name:
    if supervision.running(places):
        return stack.running_engine(places, environ)
    return engines.choose(environ).name


def _llamacpp_alone() -> Problem:
    return Problem(
        "llama.cpp runs here, and it serves its own model alone: make down, then the same with ENGINE=vllm, "
        "or take a GPU box. Nothing was changed."
    )


def _before(places: Places) -> Chosen:
    if found := chosen_model.before(places.model):
        return found
    raise Problem("there is no model before this one: BACK=1 returns from the last make model MODEL=…")


def _planned(wanted: str, environ: Mapping[str, str], *, hub_too: bool = True) -> Chosen:
    """The model of that name, its weights on this disk; without `hub_too` none is fetched."""
    if wanted.strip().lower() in {BUILT_IN.id, models.HUB_REPOSITORY.lower()}:
        return BUILT_IN
    token = environ.get("HF_TOKEN", "")
    model = planned.find(wanted, token, KEPT_IN, environ)
    options = Options(kv_cache_bytes=_cache_bytes(environ), max_num_seqs=engine.MAX_NUM_SEQS)
    plan = planned.fitting(model, _machine(), options)
    _tell(plan)
    if not hub_too and not Path(model.repository).is_dir():
        raise _llamacpp_alone()
    return _of_plan(plan, _folder(model, token, environ))


def _machine() -> Hardware:
    """What the engine may take of this machine, as one that has no more."""
    whole = hardware.find("cpu")
    return replace(whole, memory_bytes=int(whole.memory_bytes * MEMORY_SHARE), utilization=1.0)


def _cache_bytes(environ: Mapping[str, str]) -> int:
    """As vLLM reads it: whole GiB. Raises Problem if it could not."""
    said = environ.get(CACHE) or "1"
    if not (said.isascii() and said.isdigit() and len(said) < 7 and int(said)):
        raise Problem(
            f"{CACHE}={said} is no size of a KV cache: write whole GiB, as in {CACHE}=2, or unset it for 1. "
            "Nothing was changed."
        )
    return int(said) * GIB


def _tell(plan: Plan) -> None:
    console().print(
        f"  {escape(plan.model.name)} fits: {gb(plan.model.weights.bytes)} of weights, context "
        f"{plan.cache.engine.max_model_len:,} (computed)."
    )


def _folder(model: Model, token: str, environ: Mapping[str, str]) -> Path:
    if Path(model.repository).is_dir():
        return Path(model.repository).resolve()
    if catalogue.find(model.name):
        # Of any other the hub was asked for the plan.
        planned.check(model, token, KEPT_IN, environ)
    engine.install()
    return models.of_hub(model.repository, model.weights.bytes + SPARE_BYTES)


def _of_plan(plan: Plan, folder: Path) -> Chosen:
    values = {flag.name: flag.value for flag in plan.flags}
    flags = [
        word
        for name in PASSED_ON
        if name in values
        for word in ([f"--{name}"] if values[name] is True else [f"--{name}", str(values[name])])
    ]
    served = str(values["served-model-name"])
    block = model_block.of_engine(profile.gateway_file(plan, "local"), profile.ENGINE_URL)
    return Chosen(served, str(folder), tuple(flags), block, profile.most_tokens(plan))


def _own_settings(places: Places) -> None:
    """Raises Problem if the gateway does not run, or reads a file of the operator's elsewhere."""
    switch.gateway(places)
    running = services.load(places.checkout / supervision.SERVICES)["gateway"]
    file = running.settings["GATEWAY_CONFIG"]
    if Path(file) != places.config:
        raise Problem(
            f"the gateway reads {file}, as GATEWAY_CONFIG says: make model changes no file of yours."
        )
