"""What a backup says of itself in `manifest.json`: a stranger's words until each was looked at."""

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

FORMAT = 1
NAME = "manifest.json"
LIMIT_BYTES = 1 << 20
Mode = Literal["box", "local"]
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself. `revisions` are those of the databases by their name in the backup."""

    mode: Mode
    made_at: str
    gateway_version: str
    revisions: dict[str, str]
    images: dict[str, str]
    files: dict[str, dict[str, Any]]
    format: int = FORMAT

    @property
    def size_bytes(self) -> int:
        """Of all files, unpacked."""
        return sum(int(entry["bytes"]) for entry in self.files.values())


def parse(text: bytes) -> Manifest:
    """The manifest of this version's format. Raises ValueError if it is none."""
    try:
        said = json.loads(text)
    except RecursionError as error:
        raise ValueError("its manifest is nested too deeply") from error
    if not isinstance(said, dict):
        raise ValueError("its manifest is no JSON object")  # noqa: TRY004  wrong text, no wrong call
    if said.get("format") != FORMAT:
        raise ValueError(
            f"it has format {said.get('format')!r:.20}, and this version reads {FORMAT}: use a newer one"
        )
    if {*said} != {*Manifest.__dataclass_fields__}:
        raise ValueError("its manifest has other fields than this version writes")
    texts = [said["made_at"], said["gateway_version"]]
    if said["mode"] not in get_args(Mode) or not all(map(_is_plain, texts)):
        raise ValueError("its manifest does not say when and by what it was made")
    if not (_are_texts(said["revisions"]) and _are_texts(said["images"]) and _are_files(said["files"])):
        raise ValueError("its manifest does not list files, revisions and images as this version does")
    return Manifest(**said)


def _is_plain(value: object) -> bool:
    # It is printed: no line of its own, no commands for a terminal.
    return isinstance(value, str) and value.isprintable() and len(value) < 200


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_plain(name) and _is_plain(text) for name, text in value.items()
    )


def _are_files(value: object) -> bool:
    return isinstance(value, dict) and all(_is_name(name) and _is_file(one) for name, one in value.items())


def _is_name(name: str) -> bool:
    """Whether it is one file below the folder, written in the one way that there is."""
    path = PurePosixPath(name)
    return str(path) == name and not path.is_absolute() and ".." not in path.parts and name.isprintable()


def _is_file(entry: object) -> bool:
    if not isinstance(entry, dict) or {*entry} != {"bytes", "sha256"}:
        return False
    size, digest = entry["bytes"], entry["sha256"]
    return type(size) is int and size >= 0 and isinstance(digest, str) and bool(SHA256.fullmatch(digest))
