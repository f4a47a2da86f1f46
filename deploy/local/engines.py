"""Which engine the local mode runs: vLLM's CPU build, or llama.cpp's server where that cannot run.

ENGINE decides otherwise. All that the stack needs to know of an engine is an `Engine`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deploy.local import chosen_model, llamacpp, models, preflight
from deploy.local import engine as vllm
from deploy.local.chosen_model import BUILT_IN, Chosen
from deploy.local.engine import ServedModel
from deploy.local.preflight import Machine
from deploy.local.problem import Problem

Name = Literal["vllm", "llamacpp"]
TITLES: Mapping[str, str] = {"vllm": "vLLM (CPU build)", "llamacpp": "llama.cpp"}


@dataclass(frozen=True)
class Choice:
    """The engine, and one line for the operator that says why; empty where nothing needs saying."""

    name: Name
    why: str = ""


@dataclass(frozen=True)
class Engine:
    """An engine that is installed, and the model that it serves.

    `kind` is the gateway's word for it; `idle_seconds` is how long it keeps idle connections, and
    `stop_seconds` how long it may take to stop before it is killed.
    """

    name: Name
    kind: Literal["vllm", "openai"]
    model: ServedModel
    arguments: Callable[[int], list[str]]
    settings: Mapping[str, str]
    idle_seconds: int
    stop_seconds: int


def choose(environ: Mapping[str, str] = os.environ, machine: Machine | None = None) -> Choice:
    """The engine of `make up`. Raises Problem if ENGINE names none, or vLLM where that cannot run."""
    match environ.get("ENGINE", ""):
        case "llamacpp":
            return Choice("llamacpp", "The engine is llama.cpp, as ENGINE says.")
        case "vllm":
            preflight.check_engine(machine)
            return Choice("vllm")
        case "":
            trouble = preflight.vllm_trouble(machine or preflight.look())
            return Choice("llamacpp", f"The engine is llama.cpp: {trouble}") if trouble else Choice("vllm")
        case other:
            raise Problem(f"ENGINE={other} is none: it is vllm or llamacpp, or unset for what runs here.")


def recorded(file: Path) -> Name:
    """The engine that a file names; vLLM without one."""
    found = file.read_text(encoding="ascii").strip() if file.exists() else ""
    return "llamacpp" if found == "llamacpp" else "vllm"


def prepare(name: Name, chosen: Chosen = BUILT_IN) -> Engine:
    """The engine and its model, installed if they were not. Raises Problem if they cannot be had."""
    if name == "llamacpp" and chosen.folder:
        raise Problem(f"llama.cpp does not serve {chosen.folder}: ENGINE=vllm, or {chosen_model.BACK}.")
    return _llamacpp() if name == "llamacpp" else _vllm(chosen)


def _vllm(chosen: Chosen) -> Engine:
    vllm.install()
    model = chosen_model.served(chosen) or models.smollm2()
    return Engine(
        "vllm",
        "vllm",
        model,
        lambda port: vllm.arguments(model, port, chosen.flags),
        vllm.settings(),
        idle_seconds=vllm.IDLE_SECONDS,
        stop_seconds=vllm.SHUTDOWN_SECONDS + 20,
    )


def _llamacpp() -> Engine:
    folder = llamacpp.install()
    model = models.smollm2_gguf()
    return Engine(
        "llamacpp",
        "openai",
        model,
        lambda port: llamacpp.arguments(folder, model, port),
        llamacpp.settings(),
        idle_seconds=llamacpp.IDLE_SECONDS,
        stop_seconds=llamacpp.SHUTDOWN_SECONDS,
    )
