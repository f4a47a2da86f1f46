"""What the Hugging Face cache holds of a repository, looked up on the disk: the hub may be out of reach.

A repository's folder has `blobs/` (content by its hash), `snapshots/<commit>/` (names that point to blobs)
and `refs/` (which commit a branch or tag was). A file counts once its name points to it: parts have no name.
"""

import json
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import model_files
from serve_profile import Wanted

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Folder:
    """One repository's folder, whether it is there or not."""

    path: Path

    def commit(self, revision: str) -> str | None:
        """The commit that the revision was when it was last downloaded; None if that is not known."""
        if COMMIT.fullmatch(revision):
            return revision
        try:
            return (self.path / "refs" / revision).read_text().strip()
        except OSError:
            return None

    def snapshot(self, commit: str) -> Path:
        """Where the files of a commit lie under their names."""
        return self.path / "snapshots" / commit

    def blob(self, digest: str) -> Path:
        """Where the content of that hash lies once it is complete."""
        return self.path / "blobs" / digest

    def part(self, digest: str) -> Path:
        """Where it lies until then: the name that huggingface_hub gave such parts while it kept them."""
        return self.path / "blobs" / f"{digest}.incomplete"

    def files(self, commit: str) -> set[str]:
        """The files of a commit that are there, whole, by their names in the repository."""
        root = self.snapshot(commit)
        return {
            str(Path(folder, name).relative_to(root))
            for folder, _, names in os.walk(root)
            for name in names
            if Path(folder, name).is_file()  # not a name whose blob was deleted
        }

    def name_blob(self, commit: str, path: str, blob: Path) -> None:
        """Lets a commit's file of this name be that content."""
        name = self.snapshot(commit) / path
        name.parent.mkdir(parents=True, exist_ok=True)
        name.unlink(missing_ok=True)
        try:
            name.symlink_to(os.path.relpath(blob, name.parent))
        except OSError:  # exFAT and some shares have no symbolic links
            blob.rename(name)

    def name_revision(self, revision: str, commit: str) -> None:
        """Notes which commit a branch or tag is: vLLM asks nobody else."""
        if revision != commit and self.commit(revision) != commit:
            reference = self.path / "refs" / revision
            reference.parent.mkdir(parents=True, exist_ok=True)
            reference.write_text(commit)

    def forget_listing(self, commit: str, there: Collection[str]) -> None:
        """Drops huggingface_hub's list of a commit's files if some weights of it are not there.

        With such a list vLLM, offline, refuses a snapshot that lacks any `*.safetensors`, read or not: as
        in gpt-oss, which holds its weights a second time in `original/`. Without, it takes what it finds.
        """
        listing = self.path / "trees" / f"{commit}.json"
        try:
            listed = json.loads(listing.read_text())["files"]
        except (OSError, ValueError, KeyError):
            return
        if any(path.endswith((".safetensors", ".bin", ".pt")) and path not in there for path in listed):
            listing.unlink()


def indexed(snapshot: Path, load_format: str) -> set[str]:
    """The files of weights that the snapshot's index names; empty if it has none, or none that counts."""
    if model_files.SHARDS not in model_files.PATTERNS.get(load_format, model_files.ONLY_SAFETENSORS):
        return set()
    try:
        named = json.loads((snapshot / model_files.INDEX).read_text())["weight_map"].values()
        return {name for name in named if isinstance(name, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def is_whole(folder: Folder, wanted: Wanted) -> bool:
    """Whether vLLM can start from what is there, as far as the disk can tell.

    Files beside the weights are downloaded before them, so that whole weights mean a whole snapshot.
    """
    commit = folder.commit(wanted.revision)
    if commit is None or not (there := folder.files(commit)):
        return False
    if not wanted.weights:
        return model_files.has_tokenizer(there)
    named = indexed(folder.snapshot(commit), wanted.load_format)
    needed = model_files.weights(there, wanted.load_format, named)
    if not needed:
        return wanted.load_format == "dummy"
    return needed <= there and model_files.is_whole_series(needed) and model_files.has_configuration(there)


def unreadable(folder: Folder, commit: str) -> Path | None:
    """The first file or folder of a commit that vLLM may not read, being neither its owner nor root."""
    for name in sorted(folder.files(commit)):
        file = (folder.snapshot(commit) / name).resolve()
        if not _allowed(file, stat.S_IROTH, stat.S_IRGRP):
            return file
    folders = (folder.path.parent, folder.path, folder.snapshot(commit).parent, folder.snapshot(commit))
    return next((path for path in folders if not _allowed(path, stat.S_IXOTH, stat.S_IXGRP)), None)


def _allowed(path: Path, for_all: int, for_group: int) -> bool:
    """Its user has the group 0, as the image has it."""
    found = path.stat()
    return bool(found.st_mode & for_all or (found.st_gid == 0 and found.st_mode & for_group))
