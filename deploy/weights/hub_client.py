"""What is asked of the hub: the list of a repository's files, and their content, resumed where it stopped.

huggingface_hub throws away what a process that ended had of a file. Its parts of several gigabytes are kept
here instead, in the same cache, and checked against their hash once complete. It also makes paths of the
hub's ETag and writes as much as is sent: here names come from content, and no file grows over its size.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path

import listing
from bounded_file import BoundedFile
from hub_errors import Damaged, explain, is_transient
from huggingface_hub import HfApi, constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import HTTPError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers
from listing import RepositoryFile
from local_cache import Folder
from problems import Problem
from serve_profile import Wanted

# All that a call to huggingface_hub ends with; a ValueError is a bad name, or an answer that is no JSON.
FAILURES = (HTTPError, OSError, ValueError, Damaged)
# For a file beside the weights whose size the hub does not say; the largest tokenizers have a third of it.
UNSAID_BYTES = 100_000_000


@dataclass(frozen=True)
class Target:
    """What is wanted, the commit that its revision is, and the folder of the cache that it goes to."""

    wanted: Wanted
    commit: str
    folder: Folder


@dataclass(frozen=True)
class Hub:
    """The hub as one token sees it. `waits` are the seconds between attempts that brought nothing new."""

    token: str | None
    waits: tuple[float, ...]

    def listing(self, wanted: Wanted) -> tuple[str, dict[str, RepositoryFile]]:
        """The revision's commit, and its files by path, asked for once. Raises Problem."""
        try:
            info = HfApi(token=self.token or False).model_info(
                wanted.name, revision=wanted.revision, files_metadata=True, timeout=20
            )
        except listing.MISSHAPEN as error:
            raise listing.malformed(wanted, type(error).__name__) from error
        except FAILURES as error:
            raise explain(error, wanted, self.token) from error
        return listing.checked(info, wanted)

    def name_file(self, target: Target, file: RepositoryFile) -> None:
        """Puts a small file, or one whose content is there already, under its name in the snapshot."""

        def fetch() -> None:
            if file.size > constants.MAX_HTTP_DOWNLOAD_SIZE:
                self._download_huge(target, file)
            else:
                target.folder.name_blob(target.commit, file.path, self._small(target, file))

        if file.digest and file.size <= constants.MAX_HTTP_DOWNLOAD_SIZE:
            self.fetch_content(
                target, file
            )  # again where a second name took it along, without symbolic links
            target.folder.name_blob(target.commit, file.path, target.folder.blob(file.digest))
        else:
            self._persist(fetch, target.wanted, lambda: 0)

    def _download_huge(self, target: Target, file: RepositoryFile) -> None:
        # huggingface_hub makes a path of the ETag that it is told.
        url = hf_hub_url(target.wanted.name, file.path, revision=target.commit)
        if get_hf_file_metadata(url, token=self.token or False).etag != file.digest:
            raise listing.malformed(target.wanted, f"{file.path} has another ETag than its hash")
        hf_hub_download(target.wanted.name, file.path, revision=target.commit, token=self.token or False)

    def _small(self, target: Target, file: RepositoryFile) -> Path:
        """Downloads it anew; answers where its content lies, under the name that git has for it."""
        part = target.folder.part(hashlib.sha256(file.path.encode()).hexdigest())
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b") as content:
            _lock(content, target)
            _empty(content)
            self._append(content, target, file)
            blob = target.folder.blob(_git_hash(content))
            part.rename(blob)
        return blob

    def fetch_content(self, target: Target, file: RepositoryFile) -> None:
        """Downloads a large file's content, from where an earlier attempt or process stopped.

        Over 50 GB there is no plain download: huggingface_hub then takes its other way in `name_file`.
        """
        if file.size > constants.MAX_HTTP_DOWNLOAD_SIZE:
            return

        blob, part = target.folder.blob(file.digest), target.folder.part(file.digest)

        def fetch() -> None:
            if not blob.exists():
                part.parent.mkdir(parents=True, exist_ok=True)
                with part.open("a+b") as content:
                    _lock(content, target)
                    self._append(content, target, file)
                    _check(content, file)
                    part.rename(blob)

        self._persist(fetch, target.wanted, lambda: here(target.folder, file))

    def _append(self, content: BufferedRandom, target: Target, file: RepositoryFile) -> None:
        if content.tell() > file.size:
            _empty(content)
        url = hf_hub_url(target.wanted.name, file.path, revision=target.commit)
        # A server that compresses has no ranges to resume.
        headers = build_hf_headers(token=self.token or False) | {"Accept-Encoding": "identity"}
        bounded = BoundedFile(content, file.path, file.size or UNSAID_BYTES)
        http_get(url, bounded, resume_size=content.tell(), headers=headers, expected_size=file.size or None)
        content.flush()

    def _persist(self, step: Callable[[], None], wanted: Wanted, progress: Callable[[], int]) -> None:
        """Tries again, after longer and longer waits that start anew with each bit of progress."""
        waits, before = list(self.waits), progress()
        while True:
            try:
                return step()
            except FAILURES as error:
                if (now := progress()) > before:
                    waits, before = list(self.waits), now
                if not waits or not is_transient(error):
                    raise explain(error, wanted, self.token) from error
            time.sleep(waits.pop(0))


def here(folder: Folder, file: RepositoryFile) -> int:
    """How many bytes of a large file's content are on the disk."""
    for path in (folder.blob(file.digest), folder.part(file.digest)):
        try:
            return min(path.stat().st_size, file.size)
        except FileNotFoundError:
            continue
    return 0


def _lock(content: BufferedRandom, target: Target) -> None:
    """Two runs that append to one file would spoil it."""
    try:
        fcntl.flock(content, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Problem(
            f"{target.wanted.name} is being downloaded by another run: wait for it, or end it"
        ) from error


def _check(content: BufferedRandom, file: RepositoryFile) -> None:
    content.seek(0)
    if hashlib.file_digest(content, "sha256").hexdigest() != file.digest:
        _empty(content)
        raise Damaged(f"{file.path} arrived damaged")
    os.fsync(content.fileno())  # nobody looks at its hash again, whatever a power cut leaves of it


def _git_hash(content: BufferedRandom) -> str:
    """As `git hash-object` names it, which is what the hub's ETag of a small file is too."""
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    named = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    return hashlib.file_digest(content, lambda: named).hexdigest()


def _empty(content: BufferedRandom) -> None:
    content.seek(0)
    content.truncate()
