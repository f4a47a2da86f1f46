"""What the hub says that a repository holds, checked before any of it becomes a path or a size here."""

import re
from dataclasses import dataclass
from typing import Any

from huggingface_hub import constants
from local_cache import COMMIT
from problems import Problem
from serve_profile import Wanted

_DIGEST = re.compile(r"[0-9a-f]{64}")
# What huggingface_hub raises for an answer that is JSON and has not the shape of a model's page.
MISSHAPEN = (KeyError, TypeError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True)
class RepositoryFile:
    """A file as the hub lists it; `digest` is the SHA-256 of a large one's content, empty for the others."""

    path: str
    size: int
    digest: str


def checked(info: Any, wanted: Wanted) -> tuple[str, dict[str, RepositoryFile]]:
    """The commit and the files by path, of an answer that nobody vouches for. Raises Problem."""
    try:
        commit, siblings = info.sha, list(info.siblings or ())
        pinned = COMMIT.fullmatch(wanted.revision)
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise malformed(wanted, "the commit is none")
        if pinned and commit != wanted.revision:
            raise malformed(wanted, f"it is of commit {commit}, and {wanted.revision} was asked for")
        files = [_file(sibling, wanted) for sibling in siblings]
    except MISSHAPEN as error:
        raise malformed(wanted, type(error).__name__) from error
    return commit, {file.path: file for file in files}


def malformed(wanted: Wanted, what: str) -> Problem:
    """The same question would get the same answer, so this is no fault of the network."""
    return Problem(
        f"the hub's answer for {wanted.name} is malformed ({what}): what answers as {constants.ENDPOINT} is "
        "not the hub, or is changed on its way: see where HTTPS_PROXY and CA_BUNDLE in .env lead"
    )


def _file(sibling: Any, wanted: Wanted) -> RepositoryFile:
    path, size = sibling.rfilename, sibling.size
    if not _is_inside(path):
        raise malformed(wanted, f"{ascii(path)[:80]} is no name of a file in a repository")
    if size is not None and (type(size) is not int or size < 0):
        raise malformed(wanted, f"{path} has no size in bytes")
    digest = sibling.lfs.sha256 if sibling.lfs else ""
    if sibling.lfs and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise malformed(wanted, f"{path} has a hash that is no SHA-256")
    return RepositoryFile(path, size or 0, digest)


def _is_inside(path: Any) -> bool:
    """Whether it stays in the snapshot's folder, and can be printed: a name is shown to the operator."""
    if not isinstance(path, str) or {"", ".", ".."} & set(path.split("/")):
        return False
    return not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 or "\ud800" <= character <= "\udfff"
                   for character in path)  # fmt: skip
