"""The NVIDIA cards that the engine gets, against those that its flags spread the model over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen
from gateway.doctor.machine import Gpu, Machine

if TYPE_CHECKING:  # `make up` imports `memory`, and needs no settings for it
    from gateway.doctor.evidence import Compose, Profile

ENGINE = "vllm"
REPLICAS = "data-parallel-size"
WITHIN = ("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size")
SPREAD = (*WITHIN, REPLICAS)


def enough(machine: Machine, profile: Profile | Unseen, compose: Compose | Unseen) -> Iterator[Finding]:
    """Whether the engine gets as many cards as its flags ask for."""
    check, chosen = "cards", seen(profile)
    given, wanted = _given(machine, compose), _wanted(chosen)
    evidence = f"{_counted(wanted)} by the flags, {_counted(len(given))} for the engine"
    if wanted <= len(given):
        yield Finding(check, "ok", "The engine gets the cards that it asks for", evidence)
        return
    if chosen.flags.get("distributed-executor-backend") == "ray":
        raise NotLookedError(Unseen("Ray may spread the model over other machines too", "ray status"))
    title = f"The flags spread the model over {_counted(wanted)}, and the engine gets {len(given)}"
    if wanted > len(machine.gpus):
        flags = ", ".join(f"{name}: {chosen.flags[name]}" for name in SPREAD if chosen.number(name))
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
    """The cards that the engine will compute on, one at least; those there are, if it asks for more.

    Raises NotLookedError where there is none, or it is not known which.
    """
    if found := _given(machine, compose)[: _wanted(profile)]:
        return found
    why = f"the engine is given cards that are not here, where {_counted(len(machine.gpus))} can be counted"
    raise NotLookedError(Unseen(why, "nvidia-smi -L, then device_ids in deploy/profiles/compose"))


def replicas(profile: Profile) -> int:
    """How many engines of `max-num-seqs` each answer behind one address: data parallel ranks.

    With a balancer of the operator's own before them, each machine or rank has an address of its own.
    """
    if _by_rank(profile):
        return 1
    local = profile.number("data-parallel-size-local")
    started = profile.number("data-parallel-start-rank") is not None  # vLLM takes it for the same
    if local and (started or profile.flags.get("data-parallel-hybrid-lb")):
        return int(local)
    return _factor(profile, REPLICAS)


def _given(machine: Machine, compose: Compose | Unseen) -> list[Gpu]:
    """Those that its container gets; all of them where no stack says otherwise."""
    if not machine.gpus:
        raise NotLookedError(Unseen("there is no NVIDIA GPU"))
    service = None if isinstance(compose, Unseen) else compose.services.get(ENGINE)
    given = None if service is None else seen(service.cards)
    if given is None:
        return list(machine.gpus)
    return [machine.gpus[at] for at in given if at < len(machine.gpus)]


def _wanted(profile: Profile) -> int:
    """The cards of this machine: the product of all kinds of parallelism, over so many machines.

    As vLLM's engine/arg_utils.py has it; what is no number there counts as one.
    """
    within, ranks, nodes = 1, _factor(profile, REPLICAS), _factor(profile, "nnodes")
    for name in WITHIN:
        within *= _factor(profile, name)
    local = 1 if _by_rank(profile) else profile.number("data-parallel-size-local")
    if local is None:
        return max(1, within * ranks // nodes)
    here = max(1, int(local))
    over = max(1, nodes // max(1, ranks // here))  # machines that one rank goes over
    return max(1, within * here // over)


def _by_rank(profile: Profile) -> bool:
    """Whether each data parallel rank is started by itself."""
    named = profile.number("data-parallel-rank") is not None
    return named or bool(profile.flags.get("data-parallel-external-lb"))


def _factor(profile: Profile, name: str) -> int:
    return max(1, int(profile.number(name) or 1))


def _counted(cards: int) -> str:
    return f"{cards} card{'' if cards == 1 else 's'}"
