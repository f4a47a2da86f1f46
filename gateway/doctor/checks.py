"""All checks by name: which judge gets which evidence, and when. docs/doctor.md has a line for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gateway.doctor import failure
from gateway.doctor.before import (
    cards,
    clock,
    disk,
    docker,
    files,
    gpu,
    hub,
    limits,
    memory,
    network,
    profile,
    secrets,
    together,
)
from gateway.doctor.evidence import Engine, Evidence
from gateway.doctor.finding import SEVERITIES, Finding, NotLookedError, Unseen, seen
from gateway.doctor.running import cache, concurrency, engine, engine_log, latency, thinking
from gateway.doctor.running import gateway as of_gateway

Stage = Literal["before", "running"]
Needs = Literal["docker", "gpu", ""]


@dataclass(frozen=True)
class Check:
    """One check. `needs`: where that is not used here, what lacks of it is a hint and no error."""

    name: str
    title: str
    stage: Stage
    judge: Callable[[Evidence], Iterator[Finding]]
    needs: Needs = ""


def _engine_answers(evidence: Evidence) -> bool:
    engines = evidence.engines
    return not isinstance(engines, Unseen) and any(isinstance(one.models, tuple) for one in engines)


def _environment(evidence: Evidence) -> Mapping[str, str] | Unseen:
    """That of the engine; where it is the stack's own, nothing is guessed without the stack's files."""
    return seen(evidence.engine_environment) if evidence.needs_docker else evidence.engine_environment


def _each(judge: Callable[[Engine], Iterator[Finding]]) -> Callable[[Evidence], Iterator[Finding]]:
    """A judge of one engine, asked about all; what is not to be had of one does not hide the others."""

    def judge_all(evidence: Evidence) -> Iterator[Finding]:
        for one in seen(evidence.engines):
            yield from judge(one)

    return judge_all


CHECKS: tuple[Check, ...] = (
    Check("docker", "Docker", "before", lambda e: docker.engine(seen(e.machine)), "docker"),
    Check("compose", "Docker Compose", "before", lambda e: docker.compose(seen(e.machine)), "docker"),
    Check("driver", "NVIDIA driver", "before", lambda e: gpu.driver(seen(e.machine)), "gpu"),
    Check(
        "gpu-in-docker", "GPU in containers", "before", lambda e: docker.gpu_in_docker(seen(e.machine)), "gpu"
    ),
    Check("cuda", "CUDA of the image", "before", lambda e: gpu.cuda(seen(e.machine), e.image_cuda), "gpu"),
    Check(
        "gpu-memory",
        "Free memory of the GPU",
        "before",
        lambda e: memory.gpu_memory(
            seen(e.machine), e.profile, e.memory, e.compose, engine_runs=_engine_answers(e)
        ),
        "gpu",
    ),
    Check(
        "cards",
        "Cards for the engine",
        "before",
        lambda e: cards.enough(seen(e.machine), e.profile, e.compose),
        "gpu",
    ),
    Check("swap", "Swap", "before", lambda e: memory.swap(seen(e.machine), e.memory)),
    Check(
        "gpu-processes",
        "Processes on the GPU",
        "before",
        lambda e: memory.holders(seen(e.holders), engine_runs=_engine_answers(e)),
        "gpu",
    ),
    Check("disk", "Disk for the weights", "before", lambda e: disk.weights(seen(e.disk))),
    Check("ports", "Ports", "before", lambda e: network.ports(seen(e.ports))),
    Check(
        "published-ports", "Published ports", "before", lambda e: network.published(e.compose, e.containers)
    ),
    Check("hf-token", "Token for the hub", "before", lambda e: hub.token(seen(e.hub))),
    Check("clock", "Clock", "before", lambda e: clock.skew(seen(e.clock))),
    Check("open-files", "Open files", "before", lambda e: limits.open_files(e.limits, e.gateway)),
    Check("pids", "Processes", "before", lambda e: limits.pids(seen(e.limits))),
    Check("secrets", "Secrets", "before", lambda e: secrets.files(seen(e.secrets))),
    Check("data-dir", "Data folder", "before", lambda e: files.data_dir(seen(e.data_dir))),
    Check("settings", "Configuration", "before", lambda e: files.settings(seen(e.configuration))),
    Check(
        "profile",
        "Flags of the engine",
        "before",
        lambda e: profile.flags(seen(e.profile), e.machine, e.compose),
    ),
    Check("parsers", "Parsers of the engine", "before", lambda e: profile.parsers(seen(e.profile))),
    Check(
        "served-model-name",
        "Name of the model",
        "before",
        lambda e: together.served_names(seen(e.profile), seen(e.configuration)),
    ),
    Check(
        "max-inflight",
        "Calls in flight",
        "before",
        lambda e: together.in_flight(seen(e.profile), seen(e.configuration), e.machine, e.compose),
    ),
    Check(
        "keep-alive",
        "Idle connections to the engine",
        "before",
        lambda e: together.keep_alive(seen(e.configuration), _environment(e), e.gateway),
    ),
    Check("engine-log", "The engine's log", "running", lambda e: engine_log.findings(seen(e.log), e.profile)),
    Check("containers", "Containers", "running", lambda e: engine.restarts(seen(e.containers))),
    Check("ready", "The gateway", "running", lambda e: of_gateway.ready(e.ready, expected=e.expects_gateway)),
    Check("key-store", "Key store", "running", lambda e: of_gateway.key_store(seen(e.gateway))),
    Check(
        "engine",
        "The engine",
        "running",
        lambda e: _each(lambda one: engine.answers(one, expected=e.expects_engine))(e),
    ),
    Check(
        "engine-models",
        "Models of the engine",
        "running",
        lambda e: _each(lambda one: engine.names(one, seen(e.configuration)))(e),
    ),
    Check("engine-hung", "A hung engine", "running", _each(engine.hung)),
    Check("errors", "Failed calls", "running", lambda e: of_gateway.errors(seen(e.gateway))),
    Check("limits", "Limits of keys", "running", lambda e: of_gateway.refusals(seen(e.gateway))),
    Check(
        "concurrency",
        "Requests at once",
        "running",
        lambda e: _each(lambda one: concurrency.alone(one, e.gateway, e.watched))(e),
    ),
    Check(
        "batch-room",
        "max-num-seqs and the KV cache",
        "running",
        lambda e: _each(lambda one: concurrency.room(one, e.profile, e.watched, e.machine, e.compose))(e),
    ),
    Check(
        "preemptions",
        "Preemptions",
        "running",
        lambda e: _each(lambda one: concurrency.preemptions(one, e.profile))(e),
    ),
    Check(
        "prefix-cache",
        "Prefix cache",
        "running",
        lambda e: _each(lambda one: cache.prefix(one, e.configuration, e.gateway))(e),
    ),
    Check(
        "first-token",
        "Time to the first token",
        "running",
        lambda e: _each(lambda one: latency.first_token(one, e.profile))(e),
    ),
    Check(
        "thinking",
        "Thinking",
        "running",
        lambda e: thinking.thinking(seen(e.gateway), seen(e.configuration)),
    ),
    Check("alerts", "Alerts", "running", lambda e: of_gateway.alerts(seen(e.watched))),
)


def diagnose(evidence: Evidence, stages: frozenset[Stage], checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """The findings of all checks of these stages, the worst first; each check has at least one."""
    found = [finding for check in checks if check.stage in stages for finding in _of(check, evidence)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _of(check: Check, evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(_weighed(finding, check, evidence) for finding in check.judge(evidence))
    except NotLookedError as lacking:
        why = f"not looked at, because {lacking.unseen.why}"
        found.append(Finding(check.name, "skipped", check.title, why, lacking.unseen.mend))
    except Exception as error:  # noqa: BLE001  # one check that breaks must not hide the others
        why = f"not judged: the doctor itself fails here ({failure.told(error)})"
        found.append(Finding(check.name, "skipped", check.title, why, "report it with gateway doctor --json"))
    return found


def _weighed(finding: Finding, check: Check, evidence: Evidence) -> Finding:
    """What lacks of Docker or a GPU is no error where nothing here is to run on them."""
    used = {"docker": evidence.needs_docker, "gpu": evidence.needs_gpu, "": True}[check.needs]
    return (
        finding if used or finding.severity not in {"error", "warning"} else replace(finding, severity="hint")
    )
