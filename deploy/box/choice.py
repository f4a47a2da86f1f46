"""Which mode `make` works in: the compose stack of a box, or the local mode without Docker."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deploy.box import machine, preflight, profiles, variables
from deploy.box.machine import Machine
from deploy.box.places import Places
from deploy.local import session
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem

Mode = Literal["box", "local"]
OTHERWISE = "MODE=local or PROFILE=name chooses otherwise."


@dataclass(frozen=True)
class Choice:
    """The mode, and one line for the operator that says why and how to choose otherwise."""

    mode: Mode
    why: str


def settled(places: Places, environ: Mapping[str, str] = os.environ) -> Choice | None:
    """What is decided without a look at the machine: by MODE, PROFILE, ENGINE, by what was set up here."""
    wanted = environ.get("MODE", "")
    profile = variables.load(places).get("PROFILE", "")
    if wanted not in {"", "box", "local"}:
        raise Problem(f"MODE={wanted} is none: it is box (the compose stack) or local (without Docker).")
    if wanted == "local":
        return Choice("local", "Local mode, as MODE says.")
    if profile:
        return Choice(
            "box", f"Compose stack with the profile {profile}, as .env says. MODE=local chooses otherwise."
        )
    if wanted == "box" or environ.get("PROFILE"):
        return Choice("box", f"Compose stack, as {'MODE' if wanted else 'PROFILE'} says.")
    if environ.get("ENGINE"):
        # The stack's engine is an image of its own.
        return Choice("local", "Local mode, as ENGINE says. MODE=box insists on the stack.")
    if session.running(LocalPlaces(places.checkout).pid_file, places.checkout):
        return Choice(
            "local", "Local mode: it runs here already. After make down, MODE=box chooses the stack."
        )
    return None


def for_up(places: Places, environ: Mapping[str, str] = os.environ) -> Choice:
    """The mode of `make up`: the stack where Docker and an NVIDIA GPU are there, else the local mode."""
    return settled(places, environ) or by_machine(machine.look(places))


def for_others(places: Places, environ: Mapping[str, str] = os.environ) -> Choice:
    """The mode of all other targets: what `make up` set up here."""
    return settled(places, environ) or Choice("local", "Local mode.")


def by_machine(seen: Machine) -> Choice:
    """The mode that suits a machine."""
    gpu = (
        seen.gpus[0].name if seen.gpus else "an NVIDIA GPU" if seen.gpu_in_docker or seen.gpu_trouble else ""
    )
    if gpu and seen.docker:
        profile = profiles.for_machine(seen)
        named = f" with the profile {profile}" if profile else ""
        return Choice("box", f"Compose stack{named}: Docker and {gpu} are here. {OTHERWISE}")
    if gpu:
        trouble = next(preflight.docker_troubles(seen), "Docker does not answer.")
        return Choice(
            "local", f"Local mode, on the CPU: {gpu} is here, but: {trouble} MODE=box insists on the stack."
        )
    if seen.docker:
        return Choice(
            "local", "Local mode: no NVIDIA GPU is here. PROFILE=cpu starts the compose stack without one."
        )
    return Choice(
        "local", "Local mode: neither an NVIDIA GPU nor Docker is here. MODE=box insists on the stack."
    )
