"""Gateway and engine against each other: names, how many at once, how long idle connections are kept."""

from collections.abc import Iterator, Mapping

from gateway.doctor import spread
from gateway.doctor.evidence import Compose, Configuration, Scrape
from gateway.doctor.finding import NOT_ASKED, Finding, NotLookedError, Severity, Unseen
from gateway.doctor.machine import Machine, memory
from gateway.doctor.profile import Profile
from gateway.doctor.vllm import LARGE_DEVICE_MIB
from gateway.settings import Model, Settings

KEEP_ALIVE = "VLLM_HTTP_TIMEOUT_KEEP_ALIVE"
ENGINE_SECONDS = 5.0  # vLLM's default: envs.py
MANY_RECONNECTS = 20
UNSET = NotLookedError(Unseen("the configuration has no [[models]]", "gateway check"))


def _settings(configuration: Configuration) -> Settings:
    if configuration.settings is None:
        raise NotLookedError(Unseen("the configuration is not valid", "gateway check"))
    return configuration.settings


def served_names(profile: Profile, configuration: Configuration) -> Iterator[Finding]:
    """Whether the engine serves the model under the id that callers write."""
    check = "served-model-name"
    said = profile.flags.get("served-model-name")
    given = said if isinstance(said, list) else [said] if said else []
    names = [str(name) for name in given] or [str(profile.flags.get("model", ""))]
    models = [model for model in _settings(configuration).models if model.kind == "vllm"]
    if not models:
        raise UNSET
    known = {model.engine_model or model.id for model in models}
    if known & set(names):
        yield Finding(check, "ok", "Gateway and engine call the model the same", ", ".join(names))
        return
    title = "The engine serves the model under another name than the gateway asks for"
    wanted = min(known)
    evidence = f"engine: {', '.join(names)}; gateway: {', '.join(sorted(known))}"
    yield Finding(check, "error", title, evidence, f"served-model-name: {wanted} (in {profile.place})")


def in_flight(
    profile: Profile,
    configuration: Configuration,
    machine: Machine | Unseen,
    compose: Compose | Unseen = NOT_ASKED,
) -> Iterator[Finding]:
    """Whether the gateway lets about as many through as the engines run at once."""
    check = "max-inflight"
    models = [model for model in _settings(configuration).models if model.kind == "vllm"]
    if not models:
        raise UNSET
    each = int(profile.number("max-num-seqs") or _default(machine, profile, compose))
    for model in models:
        engines = len(model.engines) * spread.replicas(profile)
        yield from _in_flight(check, model, each, engines, profile.place)


def _in_flight(check: str, model: Model, each: int, engines: int, place: str) -> Iterator[Finding]:
    limit, seqs = model.max_inflight, each * engines
    evidence = f"max_inflight {limit}, max-num-seqs {each}{f' in each of {engines}' if engines > 1 else ''}"
    mend = f"max_inflight = {seqs} in gateway.toml, or max-num-seqs: {-(-limit // engines)} in {place}"
    if limit > seqs:
        title = f"{model.id}: more are sent at once than the engine runs; they wait where nobody sorts them"
        # What nobody has chosen is the gateway's own default.
        severity: Severity = "warning" if "max_inflight" in model.model_fields_set else "hint"
        yield Finding(check, severity, title, evidence, mend)
    elif limit * 2 <= seqs:
        title = f"{model.id}: the engine could run twice as many as the gateway sends"
        yield Finding(check, "hint", title, evidence, mend)
    else:
        yield Finding(check, "ok", f"{model.id}: as many in flight as the engine runs", evidence)


def _default(machine: Machine | Unseen, profile: Profile, compose: Compose | Unseen) -> int:
    """What vLLM takes where nothing is said, by the first of its spread."""
    if isinstance(machine, Unseen) or not machine.gpus:
        return 256
    first = spread.used(machine, profile, compose)[0]
    return 1024 if memory(machine, first)[0] >= LARGE_DEVICE_MIB else 256


def keep_alive(
    configuration: Configuration, environment: Mapping[str, str] | Unseen, gateway: Scrape | Unseen
) -> Iterator[Finding]:
    """Whether the gateway closes idle connections before vLLM does: else a call meets a closed one.

    `environment` is that of the engine's process. Where it is not known, vLLM's default is assumed.
    """
    check, settings = "keep-alive", _settings(configuration)
    if settings.models and all(model.kind != "vllm" for model in settings.models):
        raise NotLookedError(Unseen("the engine is not vLLM, and does not say how long it keeps connections"))
    ours, theirs = settings.engine.keep_alive_seconds, _engine_seconds(environment)
    evidence = f"gateway {ours:g} s, engine {theirs:g} s{_known(environment)}"
    if ours >= theirs:
        title = (
            "The engine closes idle connections before the gateway does: now and then a call is sent twice"
        )
        mend = f"{KEEP_ALIVE}={max(int(ENGINE_SECONDS), int(ours * 2))} in the engine's environment"
        if theirs > 1:  # the settings take no zero
            mend += f", or keep_alive_seconds = {theirs - 1:g} in [engine] of gateway.toml"
        severity: Severity = "hint" if isinstance(environment, Unseen) else "warning"
        yield Finding(check, severity, title, evidence, mend)
        return
    replaced = 0.0 if isinstance(gateway, Unseen) else gateway.last.sum("gateway_engine_reconnects_total")
    if replaced >= MANY_RECONNECTS:
        title = "Kept connections to the engine turn out dead: something closes them earlier than it says"
        evidence = f"{evidence}; {replaced:.0f} replaced since the start"
        yield Finding(check, "warning", title, evidence, "keep_alive_seconds = 2 in [engine] of gateway.toml")
    else:
        yield Finding(check, "ok", "Idle connections end on the gateway's side first", evidence)


def _engine_seconds(environment: Mapping[str, str] | Unseen) -> float:
    said = "" if isinstance(environment, Unseen) else environment.get(KEEP_ALIVE, "")
    try:
        return float(said or ENGINE_SECONDS)
    except ValueError:
        return ENGINE_SECONDS


def _known(environment: Mapping[str, str] | Unseen) -> str:
    if isinstance(environment, Unseen):
        return f" (vLLM's default, since {environment.why})"
    return "" if KEEP_ALIVE in environment else " (vLLM's default)"
