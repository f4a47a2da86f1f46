"""Runs the docker command line in the checkout, so that compose.yaml and .env are this stack's. No SDK."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

from deploy.box.places import Places
from deploy.box.variables import MEANING, load
from deploy.local.problem import Problem
from gateway.doctor.look.programs import ABSENT, SILENT, Done

# Compose prefers them to .env, and .env is what an operator reads to know what runs.
_BEFORE_DOTENV = frozenset(
    {*MEANING, "COMPOSE_ENV_FILES", "COMPOSE_PATH_SEPARATOR", "COMPOSE_DISABLE_ENV_FILE"}
)

QUICK_SECONDS = 60.0


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The operator's environment without what would override .env."""
    return {name: value for name, value in environ.items() if name not in _BEFORE_DOTENV}


def tried(
    places: Places, *argv: str, given: str | None = None, seconds: float | None = QUICK_SECONDS
) -> Done:
    """How `docker …` ended; code 127 where there is no docker, 124 where it did not end in time."""
    try:
        done = subprocess.run(
            ["docker", *argv],
            cwd=places.checkout, env=environment(), capture_output=True, text=True, errors="replace",
            input=given, stdin=subprocess.DEVNULL if given is None else None, timeout=seconds, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return Done(ABSENT, "", "docker is not installed")
    except subprocess.TimeoutExpired:
        return Done(SILENT, "", f"docker {argv[0]} did not answer within {seconds:.0f} s")
    return Done(done.returncode, done.stdout, done.stderr)


def answer(
    places: Places, *argv: str, given: str | None = None, seconds: float | None = QUICK_SECONDS
) -> str:
    """What `docker …` prints. Raises Problem with its last line if it fails."""
    done = tried(places, *argv, given=given, seconds=seconds)
    if done.code:
        raise Problem(f"docker {_spoken(argv)} failed: {done.last_line}")
    return done.out


def stream(
    places: Places, *argv: str, source: IO[bytes] | None = None, target: IO[bytes] | None = None
) -> None:
    """Runs `docker …` between two open files. Raises Problem with its last line if it fails."""
    done = subprocess.run(
        ["docker", *argv],
        cwd=places.checkout, env=environment(), stdin=source or subprocess.DEVNULL,
        stdout=target or subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    if done.returncode:
        told = Done(done.returncode, "", done.stderr.decode(errors="replace"))
        raise Problem(f"docker {_spoken(argv)} failed: {told.last_line}")


def show(places: Places, *argv: str, instead: Mapping[str, str] | None = None) -> None:
    """Runs `docker …` before the operator's eyes, on standard error: standard output holds results alone.

    `instead` are values for this run in the place of those in .env. Raises Problem if it fails.
    """
    environ = environment() | dict(instead or {})
    sys.stderr.flush()
    done = subprocess.run(
        ["docker", *argv],
        cwd=places.checkout, env=environ, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Problem(f"docker {_spoken(argv)} failed: its own words stand above. Then run the same again.")


def with_setup(places: Places) -> list[str]:
    """`compose` with the profiles of .env and that of the weights: an option replaces what .env says."""
    active = load(places).get("COMPOSE_PROFILES", "").split(",")
    return [
        "compose",
        *(word for profile in [*active, "setup"] if profile for word in ("--profile", profile)),
    ]


def _spoken(argv: tuple[str, ...]) -> str:
    """The command without its options: arguments may be long."""
    return " ".join([word for word in argv if not word.startswith("-") and len(word) < 40][:4])
