"""`llama-server` compiled from llama.cpp's source, for machines that no ready build of it fits.

The source is what the package `llama-cpp-python` (MIT) carries; its own code is not used. Compiled for
this very processor, so the folder's name tells processors apart: homes are shared between machines.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from deploy.local import locks, preflight
from deploy.local.places import cache_folder
from deploy.local.preflight import Machine
from deploy.local.problem import Problem
from deploy.local.processes import run
from deploy.local.progress import Step, step

HERE = Path(__file__).parent
TOOLS = HERE / "tools.txt"
SOURCE = HERE / "source.txt"

NEEDED_BYTES = 1_500_000_000
COMPILERS = ("c++", "g++", "clang++")
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    # Its page for a browser would be fetched from the network while compiling.
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
)


def folder(machine: Machine) -> Path:
    """Where `llama-server` is or will be: another for each version and each kind of processor."""
    kind = f"{machine.system} {machine.processor} {' '.join(sorted(machine.cpu_flags))}".encode()
    digest = hashlib.sha256(SOURCE.read_bytes() + " ".join(OPTIONS).encode() + kind).hexdigest()[:10]
    return cache_folder() / "engines" / f"llamacpp-source-{machine.processor.lower()}-{digest}"


def server(target: Path) -> Path:
    """The program, whether it is there or not."""
    return target / "bin" / "llama-server"


def build(target: Path, why: str) -> None:
    """Compiles it into a folder. A build that was interrupted goes on where it was.

    Raises Problem without a compiler (`why` says why one is needed), or with the last lines of what failed.
    """
    if not any(map(shutil.which, COMPILERS)):
        raise Problem(
            f"{why} So llama.cpp is compiled from source, and there is no C++ compiler: install one (Debian, "
            "Ubuntu: apt install g++; Alpine: apk add g++ linux-headers; macOS: xcode-select --install), "
            "then run the same again."
        )
    preflight.check_space(target, NEEDED_BYTES)
    work = target.with_name(target.name + ".build")
    log = target.with_name(target.name + ".log")
    # Compilers outlive one that was interrupted: they hold this lock, and are not disturbed.
    with (
        locks.held(work / "out", "compiling what was begun before") as lock,
        step("Compiling the engine (llama.cpp): up to half an hour, once") as progress,
    ):
        _tools(work, progress, log)
        _unpack(work, progress, log)
        _compile(work, progress, log, lock)
    server(target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(work / "out" / "bin" / "llama-server", server(target))
    shutil.rmtree(work)


def _tools(work: Path, progress: Step, log: Path) -> None:
    """CMake and Ninja, whichever this machine has, in the versions that were tried."""
    stamp = work / "tools" / "complete"
    if stamp.exists():
        return
    shutil.rmtree(stamp.parent, ignore_errors=True)
    run([sys.executable, "-m", "venv", stamp.parent], step=progress, log=log)
    wanted: list[str | Path] = ["--no-deps", "--require-hashes", "-r", TOOLS]
    run([*_pip(work), "install", "--progress-bar=off", *wanted], step=progress, log=log)
    stamp.touch()


def _unpack(work: Path, progress: Step, log: Path) -> None:
    if (work / "source").exists():
        return
    # Its metadata is made when it is downloaded, by the tools that were just installed.
    as_source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--progress-bar=off"]
    wanted: list[str | Path] = ["--require-hashes", "-r", SOURCE, "-d", work / "fetched"]
    run([*_pip(work), "download", *as_source, *wanted], step=progress, log=log)
    (archive,) = (work / "fetched").glob("*.tar.gz")
    partial = work / "source.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.unpack_archive(archive, partial)
    (root,) = partial.iterdir()
    (root / "vendor" / "llama.cpp").rename(work / "source")
    shutil.rmtree(partial)


def _compile(work: Path, progress: Step, log: Path, lock: int) -> None:
    tools = work / "tools" / "bin"
    options = [*OPTIONS, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"]
    run([tools / "cmake", "-S", work / "source", "-B", work / "out", *options], step=progress, log=log)
    wanted: list[str | Path] = ["-C", work / "out", "-j", str(os.cpu_count() or 1), "llama-server"]
    run([tools / "ninja", *wanted], step=progress, log=log, hands_on=[lock])


def _pip(work: Path) -> list[str | Path]:
    python = work / "tools" / "bin" / "python"
    return [python, "-m", "pip", "--no-input", "--disable-pip-version-check"]
