"""The order of things for one repository: what is there, what is missing, is there room, content, names."""

import os
import shutil
import sys
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

import hub_errors
import local_cache
import model_files
from hub_client import Hub, Target, here
from huggingface_hub import constants, get_token
from huggingface_hub.utils import disable_progress_bars
from huggingface_hub.utils.logging import set_verbosity_error
from listing import RepositoryFile
from local_cache import Folder
from problems import Problem
from progress import Progress, gigabytes
from serve_profile import Wanted

# The disk must not run full: vLLM's compiled kernels, logs and metrics come to it as well.
SPARE_BYTES = int(os.environ.get("WEIGHTS_SPARE_BYTES", "5000000000"))
# Four minutes of silence, then the operator hears of it.
WAIT_SECONDS = tuple(
    float(each) for each in os.environ.get("WEIGHTS_WAIT_SECONDS", "1 2 5 10 30 60 60 60").split()
)
LINE_SECONDS = float(os.environ.get("WEIGHTS_LINE_SECONDS", "10"))
TERMINAL_SECONDS = 0.5
# Enough for a line of a gigabit; each file more at once is one more that is half there when something stops.
FILES_AT_ONCE = 4


def provide(wanted: Wanted) -> None:
    """All that vLLM reads of the repository, in the cache and under its names. Raises Problem."""
    disable_progress_bars()
    set_verbosity_error()
    folder = Folder(Path(constants.HF_HUB_CACHE, "models--" + wanted.name.replace("/", "--")))
    try:
        commit = _known(folder, wanted) or _from_hub(folder, wanted)
        _finish(folder, wanted, commit)
    except OSError as error:
        raise hub_errors.explain(error, wanted, None) from error


def _known(folder: Folder, wanted: Wanted) -> str | None:
    """A commit never changes: one that is whole needs no hub."""
    commit = wanted.revision if local_cache.COMMIT.fullmatch(wanted.revision) else None
    if commit and local_cache.is_whole(folder, wanted) and model_files.has_tokenizer(folder.files(commit)):
        return commit
    return None


def _from_hub(folder: Folder, wanted: Wanted) -> str:
    hub = Hub(_token(), WAIT_SECONDS)
    try:
        commit, files = hub.listing(wanted)
    except Problem as problem:
        commit = folder.commit(wanted.revision) or ""
        if not local_cache.is_whole(folder, wanted):
            raise
        _say(f"all is there already, which is as well: {problem}")
    else:
        _fill(hub, Target(wanted, commit, folder), files)
    return commit


def _token() -> str | None:
    try:
        token: str | None = get_token()
    except OSError as error:
        raise Problem(f"the token in {hub_errors.TOKEN_FILE} cannot be read: {error.strerror}") from error
    return token


def _fill(hub: Hub, target: Target, files: dict[str, RepositoryFile]) -> None:
    """Downloads what is missing. Weights get their names last: whole weights then mean a whole snapshot."""
    there = target.folder.files(target.commit)
    small = model_files.small(files) - there
    if small:
        _check_writable(target.folder)
    if target.wanted.weights and model_files.INDEX in small:
        hub.name_file(target, files[model_files.INDEX])
    weights = _weights(target, files) - there
    missing = [files[path] for path in (*sorted(small), *sorted(weights))]
    if missing:
        _check_writable(target.folder)
        _fetch(hub, target, list({file.digest: file for file in missing if file.digest}.values()), missing)
        for file in missing:
            hub.name_file(target, file)


def _weights(target: Target, files: dict[str, RepositoryFile]) -> set[str]:
    wanted = target.wanted
    if not wanted.weights:
        return set()
    named = local_cache.indexed(target.folder.snapshot(target.commit), wanted.load_format)
    found = model_files.weights(files, wanted.load_format, named)
    if lost := found - set(files):
        raise Problem(
            f"{wanted.name} lacks {min(lost)}, which its index names: choose another revision or model"
        )
    if not found and wanted.load_format != "dummy":
        raise Problem(f"{wanted.name} holds no weights that vLLM reads with load-format {wanted.load_format}")
    return found


def _check_writable(folder: Folder) -> None:
    """Said before gigabytes are on their way. Raises Problem."""
    nearest = next(path for path in (folder.path, *folder.path.parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        raise hub_errors.not_writable(nearest)


def _fetch(hub: Hub, target: Target, large: list[RepositoryFile], missing: list[RepositoryFile]) -> None:
    """The content of large files, some at once, with a line on how far it is every few seconds."""
    _announce(target, missing)
    pool = ThreadPoolExecutor(FILES_AT_ONCE)
    running: set[Future[None]] = {pool.submit(hub.fetch_content, target, file) for file in large}
    progress = Progress(
        sum(file.size for file in large), lambda: sum(here(target.folder, file) for file in large)
    )
    try:
        while running:
            every = TERMINAL_SECONDS if progress.interactive else LINE_SECONDS
            ended, running = wait(running, every, FIRST_EXCEPTION)
            for future in ended:
                future.result()
            progress.show()
    finally:
        progress.close()


def _announce(target: Target, missing: list[RepositoryFile]) -> None:
    """Says what is to come. Raises Problem if the disk has no room for it."""
    to_come = sum(file.size - (here(target.folder, file) if file.digest else 0) for file in missing)
    free = shutil.disk_usage(next(path for path in target.folder.path.parents if path.exists())).free
    if free < to_come + SPARE_BYTES:
        raise Problem(
            f"{target.wanted.name} needs {gigabytes(to_come + SPARE_BYTES)} on the disk of WEIGHTS_DIR "
            f"({gigabytes(to_come)} to come, {gigabytes(SPARE_BYTES)} to spare), and {gigabytes(free)} are "
            "free: make room, or set WEIGHTS_DIR in .env to a folder on a larger disk"
        )
    _say(f"{target.wanted.name}: {gigabytes(to_come)} to download, {gigabytes(free)} free on the disk")


def _finish(folder: Folder, wanted: Wanted, commit: str) -> None:
    """Leaves it so that vLLM finds and may read it, offline."""
    files = folder.files(commit)
    # Only now: until here a branch's earlier commit was whole, and vLLM could start from that.
    folder.name_revision(wanted.revision, commit)
    folder.forget_listing(commit, files)
    if closed := local_cache.unreadable(folder, commit):
        raise Problem(
            f"vLLM, user 2000 with group 0, may not read {closed}: `sudo chmod -R o+rX WEIGHTS_DIR`"
        )
    size = gigabytes(sum((folder.snapshot(commit) / name).stat().st_size for name in files))
    _say(f"{wanted.name} is there: {size} in {len(files)} files, commit {commit[:12]}")


def _say(text: str) -> None:
    print(f"weights: {text}", file=sys.stderr, flush=True)
