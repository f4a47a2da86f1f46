"""Which model the local engine serves: its own, unless `make model` chose another; and the one before."""

import json
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local import model_block, whole_file
from deploy.local.engine import ServedModel
from deploy.local.problem import Problem

BACK = "make model BACK=1"
BUILT_IN_ID = "smollm2-135m"
# As `configuration` writes it into a new file.
BUILT_IN_BLOCK = """\
[[models]]
id = "smollm2-135m"
aliases = ["default"]
engines = []

[models.defaults]
# The makers' own advice for this model.
temperature = 0.2
top_p = 0.9
"""


@dataclass(frozen=True)
class Chosen:
    """A model. `folder` is empty for the engine's own; `flags` are vLLM's for it.

    `block` is what the gateway's settings say of it, `most_tokens` what their `default_max_tokens` may be at
    most (0: no matter).
    """

    id: str
    folder: str
    flags: tuple[str, ...]
    block: str
    most_tokens: int


BUILT_IN = Chosen(BUILT_IN_ID, "", (), BUILT_IN_BLOCK, 0)


def now(file: Path) -> Chosen:
    """The model that was chosen; the engine's own without such a file."""
    return _read(file)[0] or BUILT_IN


def before(file: Path) -> Chosen | None:
    """The model that was served before; None if none was ever chosen."""
    return _read(file)[1]


def _read(file: Path) -> tuple[Chosen | None, Chosen | None]:
    if not file.exists():
        return None, None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return _chosen(found["now"]), _chosen(found["before"])
    except (ValueError, TypeError, KeyError) as error:
        raise Problem(
            f"{file} cannot be read ({error}): remove it, then make up serves its own model."
        ) from error


def _chosen(found: dict[str, object]) -> Chosen:
    flags = found["flags"]
    return Chosen(**{**found, "flags": tuple(flags if isinstance(flags, list) else ())})  # type: ignore[arg-type]  # JSON


def save(file: Path, now: Chosen, before: Chosen) -> None:
    """Writes both, in one step."""
    text = json.dumps({"now": asdict(now), "before": asdict(before)}, indent=1)
    whole_file.replace(file, text, mode=whole_file.PRIVATE)


def served(chosen: Chosen) -> ServedModel | None:
    """What the engine is started with; None for its own. Raises Problem if the folder has gone."""
    if not chosen.folder:
        return None
    if not (Path(chosen.folder) / "config.json").is_file():
        raise Problem(f"{chosen.folder}, the model that was chosen, is gone: put it back, or {BACK}.")
    return ServedModel(chosen.id, Path(chosen.folder))


def name_in(file: Path, chosen: Chosen, port: int) -> None:
    """Lets the gateway's settings name the engine's model, where they name another; aliases stay.

    Raises Problem if they cannot be changed.
    """
    text, url = file.read_text(encoding="utf-8"), address(port)
    if model_block.id_of(text, url) in {"", chosen.id}:
        return
    block = model_block.adapted(chosen.block, text, url)
    text = model_block.put(text, url, block, most_tokens=chosen.most_tokens)
    whole_file.replace(file, text, mode=stat.S_IMODE(file.stat().st_mode))


def address(port: int) -> str:
    """The engine's, as the settings name it."""
    return f"http://127.0.0.1:{port}"
