"""Room on the disk that the weights go to. How large a model is stands in its name, roughly."""

import re
from collections.abc import Iterator

from gateway.doctor.evidence import Disk
from gateway.doctor.finding import Finding

IMAGE_BYTES = (
    40_000_000_000  # unpacked, beside what it is unpacked from (guess), as in deploy/box/profiles.py
)
SPARE_BYTES = 5_000_000_000
# Bytes a parameter, by what a checkpoint calls itself; embeddings and norms stay larger, hence the halves
# more.
_SIZES = (
    (r"fp8|int8|w8a8", 1.05),
    (r"nvfp4|mxfp4|int4|awq|gptq|autoround|w4a16|4bit", 0.75),
    (r"fp32|float32", 4.0),
)


def weight_bytes(model: str) -> int | None:
    """An estimate of a checkpoint's size by its name, as in `Qwen3.5-35B-A3B-FP8`; None if it names none."""
    found = re.search(r"(?<![\dA-Za-z.])(\d+(?:\.\d+)?)([BM])(?![A-Za-z])", model, re.IGNORECASE)
    if not found:
        return None
    parameters = float(found[1]) * (1e9 if found[2].upper() == "B" else 1e6)
    each = next((size for pattern, size in _SIZES if re.search(pattern, model, re.IGNORECASE)), 2.0)
    return int(parameters * each)


def weights(disk: Disk) -> Iterator[Finding]:
    """Whether the model, and the engine's image if it is not there yet, fit on their disk."""
    check, free = "disk", disk.free_bytes
    model = 0 if disk.there else weight_bytes(disk.model)
    image = 0 if disk.image_there else IMAGE_BYTES
    needed = (model or 0) + image + SPARE_BYTES
    what = "what is there already" if disk.there else f"about {(model or 0) / 1e9:.0f} GB of weights"
    evidence = f"{free / 1e9:.0f} GB free at {disk.folder}; needed: {needed / 1e9:.0f} GB with {what}"
    if free < needed:
        title = f"The disk of {disk.folder} is too small for model and image"
        mend = (
            "docker image prune -a, or move Docker's data-root to a larger disk, or keep the "
            "model elsewhere: "
            "WEIGHTS_DIR=/large/disk in .env"
        )
        yield Finding(check, "error", title, evidence, mend)
    elif model is None:
        title = f"How large {disk.model or 'the model'} is, its name does not say"
        yield Finding(check, "hint", title, evidence, f"compare by hand: df -h {disk.folder}")
    else:
        yield Finding(check, "ok", "Disk", evidence)
