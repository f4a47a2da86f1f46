"""The NVIDIA cards that the engine gets, against those that its flags spread the model over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen
from gateway.doctor.machine import Gpu, Machine

if TYPE_CHECKING:  # `make up` imports `memory`, and needs no settings for it
    from gateway.doctor.evidence import Compose, Profile

ENGINE = "vllm"
SPREAD = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")


def enough(machine: Machine, profile: Profile | Unseen, compose: Compose | Unseen) -> Iterator[Finding]:
    """Whether the engine gets as many cards as its flags ask for."""
    check, chosen = "cards", seen(profile)
    given, wanted = _given(machine, compose), _wanted(chosen)
    evidence = f"{_counted(wanted)} by the flags, {_counted(len(given))} for the engine"
    if wanted <= len(given):
        yield Finding(check, "ok", "The engine gets the cards that it asks for", evidence)
        return
    title = f"The flags spread the model over {wanted} cards, and the engine gets {len(given)}"
    flags = ", ".join(f"{name}: {chosen.flags[name]}" for name in SPREAD if chosen.number(name))
    if wanted > len(machine.gpus):
        mend = (
            f"take {flags} out of {chosen.place}, or lower it: there are {_counted(len(machine.gpus))} here"
        )
    else:
        mend = (
            f"count: {wanted} for the service {ENGINE} in the profile's overlay (deploy/profiles/compose), "
            "in the place of its count or device_ids"
        )
    yield Finding(check, "error", title, evidence, mend)


def used(machine: Machine, profile: Profile, compose: Compose | Unseen) -> list[Gpu]:
    """The cards that the engine will compute on; those there are, if it asks for more."""
    return _given(machine, compose)[: _wanted(profile)]


def _given(machine: Machine, compose: Compose | Unseen) -> list[Gpu]:
    """Those that its container gets; all of them where nothing says so."""
    if not machine.gpus:
        raise NotLookedError(Unseen("there is no NVIDIA GPU"))
    service = None if isinstance(compose, Unseen) else compose.services.get(ENGINE)
    if service is None or service.cards is None:
        return list(machine.gpus)
    return [machine.gpus[at] for at in service.cards if at < len(machine.gpus)]


def _wanted(profile: Profile) -> int:
    """As many as the product of vLLM's three kinds of parallelism; what is no number there counts as one."""
    count = 1
    for name in SPREAD:
        count *= max(1, int(profile.number(name) or 1))
    return count


def _counted(cards: int) -> str:
    return f"{cards} card{'' if cards == 1 else 's'}"
