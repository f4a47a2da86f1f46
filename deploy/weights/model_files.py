"""Which files of a repository vLLM reads, by its own rules: no weights twice, nothing of the training.

The rules are those of vLLM 0.32: `DefaultModelLoader._prepare_weights` and `download_weights_from_hf`.
"""

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

INDEX = "model.safetensors.index.json"
CONSOLIDATED = "consolidated*.safetensors"
SHARDS = "*.safetensors"

# Configuration, tokenizer, chat template and the code of models that bring their own.
SMALL = (
    "*.json",
    "*.txt",
    "*.jinja",
    "*.py",
    "*.model",
    "*.model.v*",
    "*.tiktoken",
    "*.spm",
    "*.bpe",
    "*.vocab",
)
TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model*",
    "tekken.json",
    "*.tiktoken",
    "vocab.*",
    "*.spm",
    "*.bpe.model",
)
CONFIGURATIONS = ("config.json", "params.json")

PATTERNS = {
    "auto": (SHARDS, "*.bin", "*.pt"),
    "hf": (SHARDS, "*.bin", "*.pt"),
    "mistral": (CONSOLIDATED,),
    "pt": ("*.pt",),
    "npcache": ("*.bin",),
    "dummy": (),
}
ONLY_SAFETENSORS = (SHARDS,)  # what the other formats, as fastsafetensors, read
SERIES = re.compile(r"-\d{5}-of-(\d{5})\.")
OF_TRAINING = ("training_args.bin", "optimizer.*", "scheduler.pt", "scaler.pt", "rng_state*")


def small(paths: Iterable[str]) -> set[str]:
    """All that is read beside the weights."""
    return {path for path in paths if _matches(path, SMALL)}


def weights(paths: Collection[str], load_format: str, indexed: Collection[str]) -> set[str]:
    """The files of weights, empty if there are none that this format reads.

    `indexed` are those that the index names; they may lie in folders, others count only at the top.
    """
    top = {path for path in paths if "/" not in path and not _matches(path, OF_TRAINING)}
    if load_format == "auto" and (consolidated := {path for path in top if fnmatchcase(path, CONSOLIDATED)}):
        return consolidated  # Mistral's own format, beside which the same weights lie in shards
    for pattern in PATTERNS.get(load_format, ONLY_SAFETENSORS):
        if pattern == SHARDS and indexed:
            return set(indexed)
        if found := {path for path in top if fnmatchcase(path, pattern)}:
            return found
    return set()


def is_whole_series(files: Collection[str]) -> bool:
    """Whether shards named `…-00001-of-00014…` are all there; without an index their number alone tells."""
    counts = {int(found[1]) for path in files if (found := SERIES.search(path))}
    return all(len(files) >= count for count in counts)


def has_configuration(paths: Iterable[str]) -> bool:
    """Whether that of a model is there."""
    return any(_matches(path, CONFIGURATIONS) for path in paths)


def has_tokenizer(paths: Iterable[str]) -> bool:
    """Whether one is there, in any of the usual forms."""
    return any(_matches(path, TOKENIZERS) for path in paths)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
