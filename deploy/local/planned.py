"""The MODEL of `make model`, planned before anything is changed: is it known, does it fit, what would fit."""

import difflib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from deploy.local.problem import Problem
from gateway.planner import catalogue, plan, report, source
from gateway.planner.hardware import Hardware
from gateway.planner.plan import Options, Plan
from gateway.planner.problem import PlanProblem
from gateway.planner.source import Mends, Model

EXAMPLE = "MODEL=qwen3-8b-awq, MODEL=Qwen/Qwen3-8B-AWQ or MODEL=/a/folder/with/config.json"
# How many others are named, of those that would do.
NAMED = 5
ALIAS = "default"
# Kinds of weights that vLLM's CPU build reads, of those that are known by name.
ON_CPU = frozenset({"none", "int4"})


def find(name: str, token: str, kept_in: str, environ: Mapping[str, str] = os.environ) -> Model:
    """The model of that name: a folder, a catalogue name, or a hub id, whose config is then fetched.

    `token` is the hub's, empty for none, and `kept_in` where an operator puts it. Raises Problem: no
    name, an unknown one, a hub out of reach, a gated model.
    """
    if not name.strip():
        raise Problem(f"name the model, as in {EXAMPLE}; BACK=1 returns to the one before. {_all()}")
    folder = _path(name)
    if not (folder.exists() or "/" in name or catalogue.find(name)):
        near = difflib.get_close_matches(name.lower(), catalogue.names(), NAMED, cutoff=0.4)
        said = f"Did you mean {', '.join(near)}? " if near else ""
        raise Problem(f"{name} is no folder, no hub id (owner/name) and not known by name. {said}{_all()}")
    try:
        mends = Mends(token=_mend_of_token(kept_in))
        model = source.find(str(folder), environ={**environ, "HF_TOKEN": token}, mends=mends)
    except PlanProblem as problem:
        raise Problem(f"{problem} Nothing was changed.") from problem
    _check_name(model)
    return model


def check(model: Model, token: str, kept_in: str, environ: Mapping[str, str]) -> None:
    """Returns if the hub gives the files of a model. Raises Problem otherwise, as `find` does."""
    mends = Mends(_mend_of_token(kept_in), "a folder that holds the model")
    try:
        source.check(model.repository, {**environ, "HF_TOKEN": token}, mends)
    except PlanProblem as problem:
        raise Problem(f"{problem} Nothing was changed.") from problem


def _mend_of_token(kept_in: str) -> str:
    return f"put a token that may read it into {kept_in}"


def _path(name: str) -> Path:
    """The name as a path. Raises Problem for a folder that cannot be looked at."""
    try:
        folder = Path(name).expanduser()
        folder.exists()
    except (OSError, RuntimeError) as error:
        raise Problem(f"{name[:200]!r} cannot be looked at ({error}). Nothing was changed.") from error
    return folder


def _check_name(model: Model) -> None:
    """Raises Problem for a name that no settings file can hold, or that no engine takes."""
    folder, served = Path(model.repository), plan.served_name(model.name)
    path = str(folder.resolve()) if folder.is_dir() else model.repository
    if not path.isprintable():
        said = "its path has a line break, or another character that is not printed"
    elif served.startswith("-"):
        said = "what begins with a dash is a flag to an engine"
    elif served == ALIAS:
        said = f"{ALIAS} is what callers write for whichever model is served"
    else:
        return
    raise Problem(f"{path!r} cannot be served under that name: {said}. Rename it. Nothing was changed.")


def _all() -> str:
    return f"Known by name are {', '.join(catalogue.names())}."


def fitting(model: Model, hardware: Hardware, options: Options) -> Plan:
    """The plan of a model that fits. Raises Problem otherwise, which says why, and what would fit."""
    made = _longest(model, hardware, options)
    if made.fits:
        return made
    others = sorted(_others(hardware, options), key=lambda one: -one.model.weights.bytes)
    named = ", ".join(one.model.name for one in others[:NAMED])
    would = f"These would, the largest first: {named}." if named else "Nothing that is known by name would."
    raise Problem(
        f"{model.name} does not fit on {hardware.title}: {report.why_not(made)} {would} Nothing was changed."
    )


def _longest(model: Model, hardware: Hardware, options: Options) -> Plan:
    """With a cache of a given size, the context is what that holds: the planner keeps the model's own."""
    try:
        made = plan.make(model, hardware, options)
        longest = made.cache.longest
        if options.kv_cache_bytes and not made.cache.starts and longest >= plan.SHORTEST_TOKENS:
            made = plan.make(model, hardware, replace(options, max_model_len=1 << longest.bit_length() - 1))
    except PlanProblem as problem:
        raise Problem(f"{problem} Nothing was changed.") from problem
    return made


def _others(hardware: Hardware, options: Options) -> list[Plan]:
    models = [Model(one.name, one.repository, one.shape, one.weights) for one in catalogue.every()]
    if hardware.cpu:
        models = [model for model in models if model.shape.quantization.method in ON_CPU]
    found = []
    for model in models:
        # One that vLLM refuses with these options is none that would do, and no reason to say less.
        with suppress(Problem):
            found.append(_longest(model, hardware, options))
    return [one for one in found if one.fits]
