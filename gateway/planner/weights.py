"""The weights of a model: bytes in memory, and bytes that are read for one token.

From the headers of safetensors files where those are at hand, from a published size, or counted from the
config. Embeddings are looked up, not read; of experts, those that a token is sent to are read.
"""

import json
import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gateway.planner.problem import PlanProblem
from gateway.planner.shape import Shape

Basis = Literal["computed", "published", "estimated"]
_EXPERT = re.compile(r"(^|\.)experts\.")
_EMBEDDING = re.compile(r"(embed_tokens|embed_in|wte|word_embeddings|embeddings)\.weight$")
_EMBEDDING_OF_LAYERS = re.compile(r"(^|\.)embed_tokens_per_layer\.")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output)\.")
_VISION = re.compile(
    r"(^|\.)(visual|vision\w*|audio\w*|image\w*|multi_modal_projector|embed_vision|embed_audio)\."
)
_DRAFT = re.compile(r"(^|\.)(mtp|nextn)\b")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,6})\.")
_MAX_HEADER_BYTES = 100_000_000
_MAX_TENSORS_BYTES = 10**14


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of a model's weights.

    Each step of a batch reads `fixed_bytes` and, of each of `experts` experts, those chosen by any token:
    one of them in all layers is `expert_bytes`. `active_bytes` is what the ceiling is computed from.
    """

    bytes: int
    active_bytes: int
    fixed_bytes: int
    expert_bytes: int
    experts: int
    experts_per_token: int
    basis: Basis
    source: str


def estimate(shape: Shape) -> Weights:
    """From the config alone: parameters times bytes a weight, embeddings and output layer in 16 bit."""
    rate, count = shape.quantization, shape.parameters
    head = count.head * shape.dtype_bytes
    embedding = ((0 if count.tied else count.embedding) + count.looked_up) * shape.dtype_bytes
    expert = int(count.moe_layers * count.expert * rate.expert_bytes)
    fixed = int(count.dense * rate.dense_bytes)
    # The ceiling's rule counts every active weight as quantised, as published figures do.
    active = fixed + int(count.head * rate.dense_bytes) + count.experts_per_token * expert
    return Weights(
        bytes=fixed + head + embedding + count.experts * expert,
        active_bytes=active,
        fixed_bytes=fixed + head,
        expert_bytes=expert,
        experts=count.experts,
        experts_per_token=count.experts_per_token,
        basis="estimated",
        source=f"counted from the config: {count.total / 1e9:,.1f}B weights, {count.active / 1e9:,.1f}B of "
        f"them for each token, stored as {rate.method if rate.method != 'none' else 'they were trained'}",
    )


def published(shape: Shape, total_bytes: int, active_parameters: float | None, source: str) -> Weights:
    """A size that somebody published, divided as the config says; the active weights likewise if known."""
    counted = estimate(shape)
    active = counted.active_bytes
    if active_parameters:
        active = int(active_parameters * counted.active_bytes / shape.parameters.active)
    return Weights(
        total_bytes, active, counted.fixed_bytes, counted.expert_bytes, counted.experts,
        counted.experts_per_token, "published", source,
    )  # fmt: skip


def measured(shape: Shape, tensors: Mapping[str, int], source: str, *, drafts: bool = False) -> Weights:
    """From each tensor's bytes: vision and, unless `drafts`, the draft head are not loaded for text."""
    kept = {
        name: size
        for name, size in tensors.items()
        if not _VISION.search(name) and (drafts or not _drafts(name, shape))
    }
    experts = sum(size for name, size in kept.items() if _EXPERT.search(name))
    drafted = sum(size for name, size in kept.items() if _drafts(name, shape))
    embedding = sum(size for name, size in kept.items() if _EMBEDDING.search(name))
    separate = any(_HEAD.search(name) for name in kept)
    total = sum(kept.values())
    if not total:
        raise PlanProblem(f"{source} hold no weights of a text model: download it anew.")
    looked_up = sum(size for name, size in kept.items() if _EMBEDDING_OF_LAYERS.search(name))
    fixed = total - experts - drafted - looked_up - (embedding if separate else 0)
    count = shape.parameters
    one = experts // count.experts if count.experts else 0
    active = max(1, fixed + count.experts_per_token * one)
    return Weights(total, active, fixed, one, count.experts, count.experts_per_token, "computed", source)


def _drafts(name: str, shape: Shape) -> bool:
    """Whether a tensor is of the draft head: by its name, or as a layer behind the last (DeepSeek, GLM)."""
    behind = _LAYER.search(name) if shape.draft_layers and not shape.states else None
    return bool(_DRAFT.search(name)) or (behind is not None and int(behind[1]) >= len(shape.layers))


def tensors_of(header: Mapping[str, Any], source: str) -> dict[str, int]:
    """Bytes of each tensor by a safetensors header. Raises PlanProblem if it is none."""
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        match entry:
            case {"data_offsets": [int(first), int(last)]} if 0 <= first <= last <= _MAX_TENSORS_BYTES:
                found[name] = last - first
            case _:
                raise PlanProblem(f"{source} has no safetensors header: download it anew.")
    return found


def header_length(first: bytes, source: str) -> int:
    """How long the header is, from the file's first 8 bytes. Raises PlanProblem if that cannot be."""
    length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
    if not 2 <= length <= _MAX_HEADER_BYTES:
        raise PlanProblem(f"{source} is no safetensors file: download it anew.")
    return int(length)


def in_folder(files: Iterable[Path]) -> dict[str, int]:
    """Bytes of all tensors of safetensors files; only their headers are read. Raises PlanProblem."""
    found: dict[str, int] = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                length = header_length(stream.read(8), str(file))
                header = json_object(stream.read(length), f"{file} is no safetensors file: its header")
                size = os.fstat(stream.fileno()).st_size
        except OSError as error:
            raise PlanProblem(f"{file} cannot be read ({error.strerror}): download it anew.") from error
        found |= tensors_of(header, str(file))
        _check_end(header, 8 + length, size, str(file))
    return found


def _check_end(header: Mapping[str, Any], start: int, size: int, source: str) -> None:
    """Raises PlanProblem if the tensors reach beyond the file: a download that broke off."""
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    end = start + max(ends, default=0)
    if end > size:
        raise PlanProblem(
            f"{source} is {size:,} bytes long and its tensors end at {end:,}: download it anew."
        )


def json_object(text: bytes, source: str) -> dict[str, Any]:
    """What a file holds, whoever wrote it. Raises PlanProblem if that is no JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanProblem(f"{source} is not JSON ({error}): download it anew.") from error
    if not isinstance(found, dict):
        raise PlanProblem(f"{source} holds no JSON object: download it anew.")
    return found
