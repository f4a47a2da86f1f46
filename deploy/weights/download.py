"""Downloads what a profile's model needs into the Hugging Face cache, before vLLM starts from it offline.

Runs in vLLM's image: `python3 download.py SERVE.yaml`. Exit code 0: all is there; 1: the operator has to mend
what the last line says; 75: the network failed, and the same command goes on from there.
"""

import contextlib
import os
import signal
import ssl
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

# huggingface_hub is imported after the environment is settled, which it reads on import: see `main`.
from problems import Problem
from serve_profile import Wanted, wanted

# Written by vLLM as user 2000 with group 0: compiled kernels and the notes of starts.
ENGINE_CACHE = Path(os.environ.get("ENGINE_CACHE", "/cache"))
CA_BUNDLE = Path(os.environ.get("CA_BUNDLE_FILE", "/run/secrets/ca-bundle"))


def main(arguments: list[str]) -> None:
    """Ends the process itself: threads may be in the middle of a file, whose part stays for the next run."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopped)
    if len(arguments) != 1:
        _leave(2, "usage: download.py FILE, a file for `vllm serve --config`")
    try:
        open_engine_cache(ENGINE_CACHE)
        become_owner(Path(os.environ.get("HF_HOME", "/weights")))
        trust(CA_BUNDLE)
        for each in wanted(Path(arguments[0])):
            provide(each)
    except Problem as problem:
        _leave(problem.exit_code, f"weights: {problem}")
    _leave(0)


def _stopped(number: int, _: FrameType | None) -> None:
    _leave(128 + number, "\nweights: stopped; `make up` again goes on where this stopped")


def _leave(code: int, message: str = "") -> NoReturn:
    if message:
        print(message, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def open_engine_cache(folder: Path) -> None:
    """Lets the group write there: a new volume is root's alone, and vLLM is not root. Raises Problem."""
    if not folder.is_dir():
        return
    mode = folder.stat().st_mode
    if mode & 0o2070 == 0o2070:
        return
    try:
        folder.chmod(mode & 0o7777 | 0o2070)
    except PermissionError as error:
        raise Problem(
            f"vLLM could not write to the volume vllm-cache: its owner is {folder.stat().st_uid}, and this "
            f"runs as {os.geteuid()}. Remove the volume: all that it holds is made anew"
        ) from error


def become_owner(weights: Path) -> None:
    """Where this runs as root, goes on as the owner of the cache, who may be using it on the host."""
    os.umask(0o022)  # vLLM, another user, reads it
    if os.geteuid() != 0 or not weights.is_dir():
        return
    owner = weights.stat()
    # Without the right to change, or where it makes no difference, what cannot be written says so itself.
    with contextlib.suppress(PermissionError):
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def trust(bundle: Path) -> None:
    """Lets the roots in this file count beside the system's, if it holds any."""
    with contextlib.suppress(FileNotFoundError):
        if "BEGIN CERTIFICATE" in (added := bundle.read_text(encoding="utf-8", errors="replace")):
            usual = ssl.get_default_verify_paths().cafile
            both = Path(tempfile.mkdtemp(), "roots.pem")
            both.write_text((Path(usual).read_text(encoding="utf-8") if usual else "") + added)
            os.environ |= {"SSL_CERT_FILE": str(both), "REQUESTS_CA_BUNDLE": str(both)}


def provide(wanted: Wanted) -> None:
    """All of one repository on the disk, or the folder that is named found there. Raises Problem."""
    if wanted.is_folder:
        return _check_folder(wanted)
    from provision import provide as from_hub

    return from_hub(wanted)


def _check_folder(wanted: Wanted) -> None:
    folder = Path(wanted.name).expanduser()
    if not (folder / "config.json").is_file():
        raise Problem(
            f"there is no model in the folder {folder}: WEIGHTS_DIR is /weights in the container, a model "
            "in it is named /weights/…; a model of the hub is named owner/name"
        )
    print(f"weights: {folder} is a folder on this machine: nothing to download", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
