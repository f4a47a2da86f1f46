"""The gateway's settings file of the local mode: written once, then the operator's own.

Only the port of the local engine is ever changed in it, and only because that port is taken. A file that
nobody has touched is written anew for another engine.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from deploy.local import engine as vllm
from deploy.local import llamacpp
from deploy.local.chosen_model import BUILT_IN_ID
from deploy.local.engines import Engine
from deploy.local.problem import Problem

ENGINE_URL = re.compile(r"(?<=http://127\.0\.0\.1:)\d+")

TEMPLATE = """\
# The local gateway. `make up` wrote this file, and it is yours to change: from then on `make up` writes only
# the engine's address again, when its port is taken. Unchanged, it is written anew for another engine.
# Then load it with `kill -HUP` (`make status` shows the process), or by `make down` and `make up`.

[engine]
# Under the {idle} s for which the local engine keeps idle connections.
keep_alive_seconds = {keep_alive}

[policy]
# A small model on a CPU would otherwise write on until its context is full: minutes.
default_max_tokens = 512

[usage]
# The engine computes on the CPU: what a GPU of this machine consumes has no part in its tokens.
gpu_energy = "off"

[[models]]
id = "{model}"
aliases = ["default"]
engines = ["http://127.0.0.1:{port}"]
{kind}
[models.defaults]
# The makers' own advice for this model.
temperature = 0.2
top_p = 0.9
"""


OTHER_SERVER = 'kind = "openai"  # llama.cpp: it is not sent what vLLM alone knows\n'


def text(engine: Engine, port: int) -> str:
    """The file for an engine on a local port, with the model that it serves by itself."""
    return _text(port, engine.kind, engine.idle_seconds)


def _text(port: int, kind: str, idle_seconds: int) -> str:
    keep_alive = 60 if idle_seconds > 60 else idle_seconds - 1
    line = OTHER_SERVER if kind == "openai" else ""
    return TEMPLATE.format(model=BUILT_IN_ID, port=port, kind=line, idle=idle_seconds, keep_alive=keep_alive)


def write_if_absent(file: Path, engine: Engine, port: int) -> None:
    """Writes the file for the local engine and its own model, unless there is one."""
    if not file.exists():
        file.write_text(text(engine, port), encoding="utf-8")


def suit(file: Path, engine: Engine) -> str:
    """Writes a file anew that was written for another engine and is untouched; answers what is left to do.

    That is one line for the operator, empty if there is nothing. Raises Problem if the file is not TOML.
    """
    port = engine_port(file)
    if port is None or _kind(file) == engine.kind:
        return ""
    idle = {"vllm": vllm.IDLE_SECONDS, "openai": llamacpp.IDLE_SECONDS}
    untouched = {_text(port, kind, seconds) for kind, seconds in idle.items()}
    if file.read_text(encoding="utf-8") in untouched:
        file.write_text(text(engine, port), encoding="utf-8")
        return ""
    return (
        f'{file} was written for another engine: for the model on port {port}, write kind = "{engine.kind}" '
        f"there, and a keep_alive_seconds under {engine.idle_seconds}."
    )


def _kind(file: Path) -> str:
    """The kind of the first model behind the local engine."""
    local = (model for model in _models(file) if ENGINE_URL.search(" ".join(model.get("engines", []))))
    return str(next(local).get("kind", "vllm"))


def engine_port(file: Path) -> int | None:
    """The port of the local engine that the file names; None without a file, or if it names only others.

    Raises Problem if the file is not TOML.
    """
    if not file.exists():
        return None
    found = ENGINE_URL.search(" ".join(_engines(file)))
    return int(found.group()) if found else None


def aliases(file: Path) -> dict[str, list[str]]:
    """The aliases of each model that the file names; none without a file.

    Raises Problem if the file is not TOML.
    """
    if not file.exists():
        return {}
    return {model["id"]: model.get("aliases", []) for model in _models(file) if "id" in model}


def _engines(file: Path) -> list[str]:
    return [url for model in _models(file) for url in model.get("engines", [])]


def _models(file: Path) -> list[dict[str, Any]]:
    try:
        document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Problem(
            f"{file} is not valid TOML: {error}. Mend it, or remove it and run make up again."
        ) from error
    models: list[dict[str, Any]] = document.get("models", [])
    return models


def move_engine(file: Path, old: int, new: int) -> None:
    """Puts another port into the engine's address; everything else stays as it is."""
    text = file.read_text(encoding="utf-8")
    moved = ENGINE_URL.sub(lambda found: str(new) if found.group() == str(old) else found.group(), text)
    file.write_text(moved, encoding="utf-8")
