"""llama.cpp's server: installed once per user, and the command that serves a GGUF file with it.

It comes ready as the wheel `xllamacpp`, which holds llama.cpp's own server with all its routes. The other
choices are worse: `llama-cpp-python` serves with a server of its own, and compiles for a quarter of an
hour first. Where no wheel fits this machine (`preflight.wheel_trouble` says where), `source` compiles
`llama-server` itself.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.local import locks, preflight
from deploy.local.engine import ServedModel
from deploy.local.llamacpp import source
from deploy.local.places import cache_folder
from deploy.local.preflight import Machine
from deploy.local.problem import Problem
from deploy.local.processes import outside_environment, run
from deploy.local.progress import step

HERE = Path(__file__).parent
WHEEL = HERE / "wheel.txt"
SERVE = HERE / "serve.py"
STAMP = "complete"

INSTALLED_BYTES = 250_000_000

# As many calls at once, each with the whole context of the model: 750 MB for SmolLM2-135M.
SLOTS = 4
CONTEXT_TOKENS = 8192

# How long it keeps idle connections.
IDLE_SECONDS = 5

# It cuts what runs when told to stop; the gateway before it has drained by then.
SHUTDOWN_SECONDS = 10


def folder(machine: Machine) -> Path:
    """Where the server is or will be: another for each set of versions."""
    if preflight.wheel_trouble(machine):
        return source.folder(machine)
    tag = f"cp{machine.python[0]}{machine.python[1]}-{machine.processor.lower()}"
    digest = hashlib.sha256(WHEEL.read_bytes()).hexdigest()[:10]
    return cache_folder() / "engines" / f"llamacpp-{tag}-{digest}"


def installed(target: Path) -> bool:
    """Whether it is there, whole, and its Python, if it needs one, still runs."""
    return (target / STAMP).exists() and (target / "bin").exists() and _program(target).exists()


def install(machine: Machine | None = None) -> Path:
    """The folder with the server, installed if it was not: seconds as a wheel, up to half an hour else.

    Raises Problem if the disk is too small, a download fails, or there is no compiler where one is needed.
    """
    machine = machine or preflight.look()
    target = folder(machine)
    with locks.held(target, f"installing {target.name}"):
        if not installed(target):
            _install(target, machine)
    return target


def _install(target: Path, machine: Machine) -> None:
    if trouble := preflight.wheel_trouble(machine):
        source.build(target, trouble)
    else:
        preflight.check_space(target, INSTALLED_BYTES)
        _from_wheel(target)
    (target / STAMP).touch()


def _from_wheel(target: Path) -> None:
    log = target.with_name(target.name + ".log")
    log.unlink(missing_ok=True)
    # A virtual environment cannot be moved, so it is built in place and the stamp is written last.
    shutil.rmtree(target, ignore_errors=True)
    with step("Installing the engine (llama.cpp)") as progress:
        run([sys.executable, "-m", "venv", target], step=progress, log=log)
        pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
        wanted: list[str | Path] = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", WHEEL]
        run([_python(target), *pip, *wanted], step=progress, log=log)
        _check_import(target)


def _check_import(target: Path) -> None:
    """Raises Problem if the wheel does not load: the OpenMP that it is linked with is the system's."""
    done = subprocess.run(
        [_python(target), "-c", "import xllamacpp"],
        env=outside_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    mend = ": install it (Debian, Ubuntu: apt install libgomp1)" if "libgomp" in said else ""
    raise Problem(f"llama.cpp was installed and does not load ({said}){mend}. Then run the same again.")


def _python(target: Path) -> Path:
    return target / "bin" / "python"


def _program(target: Path) -> Path:
    binary = source.server(target)
    return binary if binary.exists() else _python(target)


def arguments(target: Path, model: ServedModel, port: int) -> list[str]:
    """The command line that serves the one GGUF file of a model's folder on a loopback port."""
    (file,) = model.folder.glob("*.gguf")
    program = _program(target)
    if program == _python(target):
        return [str(program), str(SERVE), str(file), model.id, str(port), str(SLOTS), str(CONTEXT_TOKENS)]
    return [
        *(str(program), "--model", str(file), "--alias", model.id),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--parallel", str(SLOTS), "--ctx-size", str(SLOTS * CONTEXT_TOKENS), "--no-kv-unified"),
        # Neither a page of its own nor what others have asked is shown; pages of other sites get nothing.
        *("--metrics", "--no-ui", "--no-slots", "--cors-origins", "http://127.0.0.1", "--offline"),
    ]


def settings() -> dict[str, str]:
    """The variables that it is run with, beside the operator's environment."""
    # Python puts a script's folder first on its path otherwise.
    return {"PYTHONSAFEPATH": "1"}


def command(
    target: Path, model: ServedModel, port: int, environ: Mapping[str, str] = os.environ
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that serve a model on a loopback port."""
    return arguments(target, model, port), {**outside_environment(environ), **settings()}
