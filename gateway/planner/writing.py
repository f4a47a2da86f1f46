"""Writes the two files of a profile: both whole or neither, and nothing that stood there before is lost."""

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.planner.plan import Plan
from gateway.planner.problem import PlanProblem
from gateway.planner.profile import gateway_file, serve_file
from gateway.planner.shipped import Shipped


def beside(file: Path) -> Path:
    """Where the gateway's part of the profile FILE stands."""
    return file.parent / "gateway" / f"{file.stem}.toml"


def write(plan: Plan, file: Path, of: Shipped | None = None) -> list[Path]:
    """Write FILE and the gateway's part beside it; where what stood there before is kept, if it was another.

    A link is followed. Raises PlanProblem, naming the file, and then both are as they were.
    """
    texts = {file: serve_file(plan, of), beside(file): gateway_file(plan, file.stem, of)}
    for one in texts:
        _regular(one)
    with _naming(beside(file).parent):
        beside(file).parent.mkdir(parents=True, exist_ok=True)
    changed = {_target(one): _bytes(one, text) for one, text in texts.items() if _differs(one, text)}
    parts, kept = _prepare(changed)
    for one, part in parts.items():
        with _naming(one):
            part.replace(one)
    return kept


def _prepare(texts: Mapping[Path, bytes]) -> tuple[dict[Path, Path], list[Path]]:
    """The new files under other names, and copies of the old: all that can fail for want of room."""
    parts: dict[Path, Path] = {}
    kept: list[Path] = []
    made: list[Path] = []
    try:
        for file, text in texts.items():
            with _naming(file):
                parts[file] = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
                _create(parts[file], text, file, made)
                if file.exists():
                    kept.append(_keep(file, made))
    except PlanProblem:
        for one in made:
            with suppress(OSError):
                one.unlink()
        raise
    return parts, kept


def _keep(file: Path, made: list[Path]) -> Path:
    """A copy of what stands there, in the first `.before` that is free or says the same."""
    text, number = file.read_bytes(), 1
    while True:
        kept = file.with_name(f"{file.name}.before" + (f"-{number}" if number > 1 else ""))
        try:
            _create(kept, text, file, made)
        except FileExistsError:
            if kept.is_file() and kept.read_bytes() == text:
                return kept
            number += 1
        else:
            return kept


def _create(path: Path, text: bytes, like: Path, made: list[Path]) -> None:
    """A file that was not there, with the rights of the one that it is of."""
    with path.open("xb") as stream:
        made.append(path)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if like.exists():
        path.chmod(stat.S_IMODE(like.stat().st_mode))


def _target(file: Path) -> Path:
    return Path(os.path.realpath(file)) if file.is_symlink() else file


def _regular(file: Path) -> None:
    """Whether a file may stand there at all. Raises PlanProblem for folders, devices, pipes."""
    with _naming(file):
        try:
            mode = file.stat().st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise PlanProblem(f"{file} is {kind} and was left alone: name a file, as in --write mine.yaml.")


def _differs(file: Path, text: str) -> bool:
    with _naming(file):
        return not file.exists() or file.read_bytes() != _bytes(file, text)


def _bytes(file: Path, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PlanProblem(
            f"{file} cannot be written: the model's path is not UTF-8. Rename its folder."
        ) from error


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """An error of the system as one that names the file which was to be written."""
    try:
        yield
    except OSError as error:
        raise PlanProblem(f"{file} cannot be written: {error.strerror or error}.") from error
