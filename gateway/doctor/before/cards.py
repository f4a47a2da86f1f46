"""The NVIDIA cards that the engine gets, against those that its flags spread the model over."""

from collections.abc import Iterator

from gateway.doctor import vllm
from gateway.doctor.evidence import Compose
from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen
from gateway.doctor.machine import Machine
from gateway.doctor.profile import Profile
from gateway.doctor.spread import FLAGS, counted, given, wanted


def enough(machine: Machine, profile: Profile | Unseen, compose: Compose | Unseen) -> Iterator[Finding]:
    """Whether the engine gets as many cards as its flags ask for."""
    check, chosen = "cards", seen(profile)
    gets, asks = given(machine, compose), wanted(chosen)
    evidence = f"{counted(asks)} by the flags, {counted(len(gets))} for the engine"
    if asks <= len(gets):
        yield Finding(check, "ok", "The engine gets the cards that it asks for", evidence)
        return
    if chosen.flags.get("distributed-executor-backend") == "ray":
        raise NotLookedError(Unseen("Ray may spread the model over other machines too", "ray status"))
    title = f"The flags spread the model over {counted(asks)}, and the engine gets {len(gets)}"
    if asks > len(machine.gpus):
        flags = ", ".join(f"{name}: {chosen.flags[name]}" for name in FLAGS if chosen.number(name))
        mend = f"take {flags} out of {chosen.place}, or lower it: there are {counted(len(machine.gpus))} here"
    else:
        mend = (
            f"count: {asks} for the service {vllm.SERVICE} in the profile's overlay "
            "(deploy/profiles/compose), in the place of its count or device_ids"
        )
    yield Finding(check, "error", title, evidence, mend)
