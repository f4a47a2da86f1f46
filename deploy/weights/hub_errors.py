"""What the hub's and the disk's errors mean for the operator, and which of them pass by themselves."""

import errno
import os
import shutil
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from problems import Problem, Unreachable
from progress import gigabytes
from serve_profile import Wanted

TOKEN_FILE = "secrets/hf-token"  # noqa: S105  as the operator knows it
TRY_AGAIN = "`make up` again goes on where this stopped"
BUSY = {408, 425, 429}
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


class Damaged(Exception):
    """What came has not the hash that the hub names."""


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed a little later."""
    error = _cause(error)
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in BUSY or error.response.status_code >= 500
    if isinstance(error, HTTPError):
        return UNTRUSTED not in str(error)
    # Without a number it is none of the system's: huggingface_hub says so that a file came too short.
    return isinstance(error, Damaged) or (isinstance(error, OSError) and error.errno is None)


def explain(error: Exception, wanted: Wanted, token: str | None) -> Problem:
    """One line with the mend for whatever a call to huggingface_hub raised."""
    error = _cause(error)
    if isinstance(error, Problem):
        return error
    if isinstance(error, HfHubHTTPError):
        return _refused(error, wanted, token)
    if isinstance(error, HFValidationError):
        return Problem(
            f"{wanted.name} is not the name of a model: it is `owner/name`, or a folder that starts with /"
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _of_disk(error)
    if isinstance(error, Damaged):
        return Unreachable(
            f"{wanted.name}: {error}, again and again: something on the way spoils it; {TRY_AGAIN}"
        )
    return _unreachable(error)


def _cause(error: Exception) -> Exception:
    """huggingface_hub says "not in the cache" for whatever kept it from asking; the reason lies behind it."""
    behind = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else None
    return behind if isinstance(behind, Exception) else error


def _refused(error: HfHubHTTPError, wanted: Wanted, token: str | None) -> Problem:
    status = error.response.status_code
    page = f"{constants.ENDPOINT}/{wanted.name}"
    if isinstance(error, GatedRepoError):
        return _gated(page, wanted, token)
    if isinstance(error, RevisionNotFoundError):
        return Problem(f"{wanted.name} has no revision {wanted.revision}: {page}/commits lists what it has")
    if status == 401 and token:
        return Problem(
            f"the hub does not accept the token in {TOKEN_FILE}: put a valid one there, or empty the file"
        )
    if isinstance(error, RepositoryNotFoundError):
        may_be = "or the token may not read it" if token else f"or it is private, and {TOKEN_FILE} is empty"
        return Problem(f"the hub knows no model {wanted.name}: the name is wrong, {may_be}")
    if status in {401, 403}:
        return Problem(
            f"the token in {TOKEN_FILE} may not read {wanted.name} (status {status}): it needs the right to"
        )
    return Unreachable(f"the hub answers with status {status} for {wanted.name}; {TRY_AGAIN}")


def _gated(page: str, wanted: Wanted, token: str | None) -> Problem:
    if token:
        return Problem(
            f"{wanted.name} is gated, and the token in {TOKEN_FILE} has no access: accept its terms at "
            f"{page} with the account of that token, and let the token read gated repositories"
        )
    return Problem(
        f"{wanted.name} is gated: accept its terms at {page}, make a token that may read it at "
        f"{constants.ENDPOINT}/settings/tokens, and put it into {TOKEN_FILE}"
    )


def _of_disk(error: OSError) -> Problem:
    where = error.filename or constants.HF_HOME
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        free = gigabytes(shutil.disk_usage(constants.HF_HOME).free)
        return Problem(
            f"the disk of WEIGHTS_DIR is full, {free} are left: make room, or set another one; {TRY_AGAIN}"
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return not_writable(Path(os.fsdecode(where)))
    return Problem(f"{where}: {error.strerror}")


def not_writable(path: Path) -> Problem:
    """Names the user that may not write there, and what to do about it."""
    user = f"{os.geteuid()}:{os.getegid()}"
    if path.exists() and os.statvfs(path).f_flag & os.ST_RDONLY:
        return Problem(
            f"{path} is on a file system that is read-only: set WEIGHTS_DIR in .env to a folder on another"
        )
    return Problem(
        f"user {user} may not write to {path}, which is in WEIGHTS_DIR: `sudo chown -R {user} WEIGHTS_DIR`, "
        "or set WEIGHTS_DIR in .env to another folder"
    )


def _unreachable(error: Exception) -> Problem:
    said = " ".join(str(error).split()) or type(error).__name__
    if UNTRUSTED in said:
        return Unreachable(
            f"the certificate of {constants.ENDPOINT} is not trusted ({said}): behind a proxy that inspects "
            "TLS, set CA_BUNDLE in .env to a file with its roots"
        )
    return Unreachable(
        f"{constants.ENDPOINT} is out of reach ({said}): mend the network; HTTPS_PROXY "
        f"names a proxy; {TRY_AGAIN}"
    )
