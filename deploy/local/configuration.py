"""The gateway's settings file of the local mode: written once, then the operator's own.

Only the port of the local engine is ever changed in it, and only because that port is taken.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from deploy.local.problem import Problem

ENGINE_URL = re.compile(r"(?<=http://127\.0\.0\.1:)\d+")

TEMPLATE = """\
# The local gateway. `make up` wrote this file once: it is yours to change. `make up` writes only the
# engine's address again, when its port is taken.
# Then load it with `kill -HUP` (`make status` shows the process), or by `make down` and `make up`.

[engine]
# Under the 120 s for which the local engine keeps idle connections.
keep_alive_seconds = 60

[policy]
# A small model on a CPU would otherwise write on until its context is full: minutes.
default_max_tokens = 512

[[models]]
id = "{model}"
aliases = ["default"]
engines = ["http://127.0.0.1:{port}"]

[models.defaults]
# The makers' own advice for this model.
temperature = 0.2
top_p = 0.9
"""


def write_if_absent(file: Path, model: str, port: int) -> None:
    """Writes the file for a model behind the local engine, unless there is one."""
    if not file.exists():
        file.write_text(TEMPLATE.format(model=model, port=port), encoding="utf-8")


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
