"""What goes wrong with a database file, in words that name the mend."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gateway.errors import GatewayError, StorageFull
from gateway.store.kind import Kind

BUSY_RETRY_SECONDS = 1
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def translated(path: Path, kind: Kind) -> Iterator[None]:
    """Within it, a failure of the database at `path` is its kind's error, or StorageFull."""
    try:
        yield
    except DBAPIError as error:
        raise from_sqlite(error.orig, path, kind) from error
    except sqlite3.Error as error:
        raise from_sqlite(error, path, kind) from error
    except OSError as error:
        raise _from_system(error, path, kind) from error
    except SQLAlchemyError as error:
        raise unavailable(kind, f"The {kind.called} {path} cannot be read: {error}", error) from error
    except ValueError as error:
        # A row that was edited by hand: its JSON or its time is none.
        raise unavailable(
            kind, f"The {kind.called} {path} holds a value that cannot be read: {error}", error
        ) from error


def unavailable(
    kind: Kind, message: str, cause: object = None, *, retry_after: int | None = None
) -> GatewayError:
    """The error for a store that cannot be read or written now."""
    return kind.unavailable(message, retry_after=retry_after, cause=None if cause is None else str(cause))


def from_sqlite(error: BaseException | None, path: Path, kind: Kind) -> GatewayError:
    """The error that SQLite's result code stands for."""
    code = getattr(error, "sqlite_errorname", "")
    match code.removeprefix("SQLITE_").partition("_")[0]:
        case "FULL":
            return _full(path, error)
        case "BUSY" | "LOCKED":
            return unavailable(
                kind,
                f"Another process holds the lock of the {kind.called} {path}. Try again in a few seconds; "
                "if it stays so, end that process.",
                error,
                retry_after=BUSY_RETRY_SECONDS,
            )
        case "CANTOPEN" | "READONLY" | "PERM" | "AUTH":
            return forbidden(path, kind, error)
        case "NOTADB" | "CORRUPT":
            return unavailable(
                kind,
                f"The {kind.called} {path} is damaged ({error}). Stop the gateway and restore a backup.",
                error,
            )
        case "IOERR":
            return unavailable(
                kind, f"The disk of the {kind.called} {path} is failing or full ({code}).", error
            )
    return unavailable(
        kind, f"The {kind.called} {path} cannot be used ({code or 'no code'}: {error}).", error
    )


def _from_system(error: OSError, path: Path, kind: Kind) -> GatewayError:
    if error.errno in _FULL:
        return _full(path, error)
    if error.errno in _FORBIDDEN:
        return forbidden(path, kind, error)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return unavailable(
            kind, f"{path.parent} is not a directory. Name another one in GATEWAY_DATA_DIR.", error
        )
    if error.errno == errno.ENOENT:
        return unavailable(
            kind,
            f"There is no {kind.called} at {path}. Restore it, or restart the gateway to begin anew.",
            error,
        )
    return unavailable(kind, f"The {kind.called} {path} cannot be reached: {error}.", error)


def _full(path: Path, error: object) -> StorageFull:
    return StorageFull(f"No room is left on the disk of {path}. Free some and try again.", cause=str(error))


def forbidden(path: Path, kind: Kind, error: object) -> GatewayError:
    """The error for a file or directory that this user may not use."""
    return unavailable(
        kind,
        f"User {os.geteuid()} may not read and write the {kind.called} {path} and its directory. Give them "
        "to that user (chown), run as their owner, or name another directory in GATEWAY_DATA_DIR.",
        error,
    )
