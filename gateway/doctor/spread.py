"""Which of a machine's NVIDIA cards the engine gets, and how many its flags spread the model over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.doctor import vllm
from gateway.doctor.finding import NotLookedError, Unseen, seen
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.profile import Profile

if TYPE_CHECKING:  # `make up` judges its card's memory by this, and needs no settings for it
    from gateway.doctor.evidence import Compose

REPLICAS = "data-parallel-size"
WITHIN = ("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size")
FLAGS = (*WITHIN, REPLICAS)


def used(machine: Machine, profile: Profile, compose: Compose | Unseen) -> list[Gpu]:
    """The cards that the engine will compute on, one at least; those there are, if it asks for more.

    Raises NotLookedError where there is none, or it is not known which.
    """
    if found := given(machine, compose)[: wanted(profile)]:
        return found
    why = f"the engine is given cards that are not here, where {counted(len(machine.gpus))} can be counted"
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


def given(machine: Machine, compose: Compose | Unseen) -> list[Gpu]:
    """The cards that the engine's container gets; all of them where no stack says otherwise."""
    if not machine.gpus:
        raise NotLookedError(Unseen("there is no NVIDIA GPU"))
    service = None if isinstance(compose, Unseen) else compose.services.get(vllm.SERVICE)
    numbers = None if service is None else seen(service.cards)
    if numbers is None:
        return list(machine.gpus)
    return [machine.gpus[at] for at in numbers if at < len(machine.gpus)]


def wanted(profile: Profile) -> int:
    """The cards that the flags ask of this machine: all kinds of parallelism, over so many machines.

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


def counted(cards: int) -> str:
    """So many cards, as people write it."""
    return f"{cards} card{'' if cards == 1 else 's'}"
