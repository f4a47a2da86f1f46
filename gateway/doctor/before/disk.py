"""Room on the disk that the weights go to. How large a model is stands in its name, roughly."""

import re
from collections.abc import Iterator
from shlex import quote

from gateway.doctor.evidence import Disk
from gateway.doctor.finding import Finding, NotLookedError, Unseen
from gateway.doctor.vllm import IMAGE_BYTES, SPARE_BYTES

# Bytes a parameter, by what a checkpoint calls itself; embeddings and norms stay larger, hence the halves
# more. The first that matches: W4A8 has weights of 4 bits.
_SIZES = (
    (r"nvfp4|mxfp4|fp4|int4|awq|gptq|autoround|w4a\d+|q4_|[-_]4[-_]?bit", 0.75),
    (r"fp8|int8|w8a\d+|q8_|[-_]8[-_]?bit", 1.05),
    (r"fp32|float32", 4.0),
    (r"bf16|fp16|float16", 2.0),
    (r"gpt-oss", 0.7),  # comes in MXFP4 from its makers
)
# Llama 4 is named by its active parameters and its experts, which share much: billions, as its makers say.
_WHOLE = {"17b-16e": 109.0, "17b-128e": 400.0}
_SHARED = 0.83  # of so many experts times their size: Mixtral 8x7B has 46.7 billion


def weight_bytes(model: str) -> int | None:
    """An estimate of a checkpoint's size by its name, as in `Qwen3.5-35B-A3B-FP8`; None if it names none."""
    parameters = _parameters(model)
    if parameters is None:
        return None
    each = next((size for pattern, size in _SIZES if re.search(pattern, model, re.IGNORECASE)), 2.0)
    return int(parameters * each)


def _parameters(model: str) -> float | None:
    if found := re.search(r"(?<!\d)\d{1,3}B-\d{1,3}E(?![A-Za-z])", model, re.IGNORECASE):
        billions = _WHOLE.get(found[0].lower())
        return billions * 1e9 if billions else None
    if found := re.search(r"(?<!\d)(\d{1,3})x(\d{1,4}(?:\.\d{1,3})?)B(?![A-Za-z])", model, re.IGNORECASE):
        return float(found[1]) * float(found[2]) * _SHARED * 1e9
    pattern = r"(?<![\dA-Za-z.])(\d{1,6}(?:\.\d{1,6})?)([BM])(?![A-Za-z])"
    if not (found := re.search(pattern, model, re.IGNORECASE)):
        return None
    return float(found[1]) * (1e9 if found[2].upper() == "B" else 1e6)


def weights(disk: Disk) -> Iterator[Finding]:
    """Whether the model, and the engine's image if it is not there yet, fit on their disk."""
    if disk.missing:
        mend = f"write model: owner/name, or the folder that holds it: ls {quote(str(disk.folder))}"
        yield Finding("disk", "error", f"There is no model in {disk.model}", disk.missing, mend)
        return
    model = 0 if disk.there is True else _model_bytes(disk)
    sure = SPARE_BYTES + (0 if disk.image_there else IMAGE_BYTES)
    needed = sure + (model or 0)
    if (
        isinstance(disk.there, Unseen)
        and sure <= disk.free_bytes
        and (model is None or disk.free_bytes < needed)
    ):
        raise NotLookedError(disk.there)
    yield _judged(disk, model, sure, needed)


def _model_bytes(disk: Disk) -> int | None:
    return weight_bytes(disk.model) if disk.known_bytes is None else disk.known_bytes


def _judged(disk: Disk, model: int | None, sure: int, needed: int) -> Finding:
    folder, free = quote(str(disk.folder)), disk.free_bytes
    guessed = disk.known_bytes is None and free >= sure
    evidence = (
        f"{free / 1e9:.0f} GB free at {disk.folder}; needed: {needed / 1e9:.0f} GB with {_what(disk, model)}"
    )
    if free < needed:
        by_name = ", if its name tells its size" if guessed else ""
        title = f"The disk of {disk.folder} is too small for model and image{by_name}"
        mend = (
            "docker image prune -a, or move Docker's data-root to a larger disk, or keep the "
            "model elsewhere: "
            "WEIGHTS_DIR=/large/disk in .env"
        )
        return Finding("disk", "warning" if guessed else "error", title, evidence, mend)
    if model is None:
        title = f"How large {disk.model or 'the model'} is, its name does not say"
        return Finding("disk", "hint", title, evidence, f"compare by hand: df -h {folder}")
    return Finding("disk", "ok", "Disk", evidence)


def _what(disk: Disk, model: int | None) -> str:
    if disk.there is True:
        return "what is there already"
    source = "by its name, a guess" if disk.known_bytes is None else "by the catalogue"
    unseen = f"; {disk.there.why}" if isinstance(disk.there, Unseen) else ""
    return f"about {(model or 0) / 1e9:.0f} GB of weights ({source}){unseen}"
