"""The engine's weights: whether they lie in a folder, a cache or the stack's volume."""

import shlex
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from gateway.doctor import vllm
from gateway.doctor.evidence import Compose, Disk, Evidence
from gateway.doctor.finding import Unseen
from gateway.doctor.look import host, stack
from gateway.doctor.look.hub import is_folder
from gateway.doctor.look.programs import Docker
from gateway.doctor.look.site import Site
from gateway.doctor.look.tried import tried

MOUNTED = PurePosixPath("/weights")  # what compose.yaml makes of WEIGHTS_DIR
NO_PROFILE = Unseen("no profile is named", "gateway doctor --profile FILE")


def disk(evidence: Evidence, at: Site, docker: Docker, sizes: Callable[[str], int | None]) -> Disk | Unseen:
    """Room for the model of the profile, and whether it is there. `sizes` knows some models' bytes."""
    if isinstance(evidence.profile, Unseen) or not (model := evidence.profile.model):
        return NO_PROFILE
    known = tried("the catalogue", lambda: sizes(model))
    known = None if isinstance(known, Unseen) else known
    local = is_folder(model) or (at.kind != "box" and Path(model).is_dir())
    if at.kind != "box":
        return _on_host(model, at, known, local=local)
    compose, own = evidence.compose, at.variables.get("WEIGHTS_DIR")
    root = evidence.machine.data_root if not isinstance(evidence.machine, Unseen) else None
    folder = at.folder / own if own else root or at.folder
    missing = _closed(model) if local else ""
    there = False if missing else _in_container(model, evidence, docker, folder if own else None)
    if local and there is False and not missing:
        missing = f"there is no folder {_below(folder, model)}" if own else f"{model} is not in the volume"
    return Disk(
        folder=folder,
        free_bytes=host.free_bytes(folder),
        there=there,
        model=model,
        image_there=isinstance(compose, Unseen) or _has_image(compose, docker),
        local=local,
        missing=missing,
        known_bytes=known,
    )


def _has_image(compose: Compose, docker: Docker) -> bool:
    service = compose.services.get(vllm.SERVICE)
    return stack.has_image(docker, service.image if service else "")


def _on_host(model: str, at: Site, known: int | None, *, local: bool) -> Disk:
    """An engine outside of containers reads the user's own cache."""
    own = at.environ.get("HF_HOME")
    cache = Path(own) if own else Path.home() / ".cache" / "huggingface"
    there = _is_there(Path(model).expanduser() if local else _below(cache, model))
    missing = f"there is no folder {model}" if local and there is False else ""
    return Disk(
        cache, host.free_bytes(cache), there, model, image_there=True, local=local, missing=missing,
        known_bytes=known,
    )  # fmt: skip


def _closed(model: str) -> str:
    if PurePosixPath(model).is_relative_to(MOUNTED):
        return ""
    return f"the engine's container sees no folder but {MOUNTED}, which is WEIGHTS_DIR of .env"


def _below(root: Path, model: str) -> Path:
    """Where a model lies in the folder of the weights: a folder of its own, or the hub's cache."""
    if is_folder(model):
        return root / PurePosixPath(model).relative_to(MOUNTED) if not _closed(model) else Path(model)
    return root / "hub" / f"models--{model.replace('/', '--')}" / "snapshots"


def _in_container(model: str, evidence: Evidence, docker: Docker, own: Path | None) -> bool | Unseen:
    """In WEIGHTS_DIR, else in the stack's volume: by its files, or by the engine that has it mounted."""
    if own:
        return _is_there(_below(own, model))
    if isinstance(evidence.compose, Unseen):
        return evidence.compose
    name = f"{evidence.compose.project}_weights"
    lies = stack.volume(docker, name)
    if lies is None:
        return False
    if not isinstance(lies, Unseen) and _is_there(lies) is True:
        found = _is_there(_below(lies, model))
        if isinstance(found, bool):
            return found
    if _has_running_engine(evidence):
        found = stack.engine_has(docker, str(_below(Path(MOUNTED), model)))
        if isinstance(found, bool):
            return found
    mend = lies.mend if isinstance(lies, Unseen) else f"sudo ls {shlex.quote(str(lies / 'hub'))}"
    return Unseen(f"whether {model} lies in the volume {name} cannot be seen by this user", mend)


def _has_running_engine(evidence: Evidence) -> bool:
    held = () if isinstance(evidence.containers, Unseen) else evidence.containers
    return any(one.service == vllm.SERVICE and one.state == "running" for one in held)


def _is_there(folder: Path) -> bool | Unseen:
    try:
        return stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        return Unseen(
            f"{folder} cannot be looked at ({error.strerror})", f"sudo ls {shlex.quote(str(folder))}"
        )
