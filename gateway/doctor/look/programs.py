"""Runs a program with a time-out. One that is missing or silent is an answer too."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ABSENT = 127
SILENT = 124
SECONDS = 20.0


@dataclass(frozen=True)
class Done:
    """How a run ended: code 127 where there is no such program, 124 where it did not end in time."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The end of what it complained about."""
        lines = [line for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"exit code {self.code}"


class Docker(Protocol):
    """Runs `docker …` where the stack's files are."""

    def __call__(self, *argv: str, seconds: float | None = SECONDS) -> Done: ...


def run(
    argv: Sequence[str],
    seconds: float | None = SECONDS,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Done:
    """What became of a program; never raises for one that is missing, fails or hangs."""
    try:
        done = subprocess.run(  # noqa: S603 the programs are named in this room
            argv,
            cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Done(SILENT, "", f"{argv[0]} did not answer within {seconds:g} s")
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        return Done(
            ABSENT if absent else 126, "", f"{argv[0]} is not installed" if absent else str(error.strerror)
        )
    return Done(done.returncode, done.stdout, done.stderr)


def document(text: str) -> Mapping[str, Any]:
    """The JSON object that a program or an address wrote; empty if it wrote something else."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def docker_in(folder: Path, environ: Mapping[str, str]) -> Docker:
    """`docker` in a folder. One that has hung once is not asked again: each time would take as long."""
    hung: list[Done] = []

    def docker(*argv: str, seconds: float | None = SECONDS) -> Done:
        if hung:
            return hung[0]
        done = run(["docker", *argv], seconds, folder=folder, environ=environ)
        if done.code == SILENT:
            hung.append(done)
        return done

    return docker
