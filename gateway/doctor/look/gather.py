"""All evidence of one look: which gatherer is asked, and what stands in the way of asking it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from gateway.doctor import vllm
from gateway.doctor.evidence import (
    Clock,
    Compose,
    Configuration,
    Container,
    EngineLog,
    Evidence,
    Port,
    Ready,
)
from gateway.doctor.finding import Unseen
from gateway.doctor.look import counters, files, host, hub, listeners, machine, site, stack, web, weights
from gateway.doctor.look.programs import Docker, docker_in
from gateway.doctor.look.site import Site
from gateway.doctor.look.tried import tried
from gateway.doctor.machine import Machine
from gateway.doctor.profile import Parsers, Profile

IN_A_VOLUME = Unseen("it is a volume of the stack", "docker compose exec gateway gateway doctor --before")
IN_CONTAINERS = Unseen("the stack's containers have limits of their own", IN_A_VOLUME.mend)
NO_STACK = Unseen("there is no compose stack here", "run it where compose.yaml and .env are")
ELSEWHERE = Unseen(
    "the running gateway has other settings than this shell", "run it with the same GATEWAY_CONFIG"
)
# Programs that listen for us where no container does.
OUR_OWN = {"box": (), "local": ("gateway", "caddy", "vllm", "VLLM", "llama"), "alone": ("gateway",)}


@dataclass(frozen=True)
class Wishes:
    """What the operator named; None or empty: found by itself.

    `sizes` and `parsers` know of some models, by name, their bytes on the disk and what reads their answers.
    """

    folder: Path
    data_dir: Path | None = None
    ops: str = ""
    engines: tuple[str, ...] = ()
    prometheus: str = ""
    profile: Path | None = None
    engine_log: Path | None = None
    seconds: float = 5.0
    before: bool = True
    running: bool = True
    sizes: Callable[[str], int | None] = field(default=lambda _: None)
    parsers: Callable[[str], Parsers | None] = field(default=lambda _: None)


def gather(wishes: Wishes, environ: Mapping[str, str]) -> Evidence:
    """Everything that can be seen from here; takes `seconds` and a little more, where something runs."""
    at = site.find(wishes.folder, environ)
    docker = docker_in(at.folder, _for_docker(at, environ))
    configuration = files.configuration(at.config, at.environ)
    looked = machine.look(docker)
    composed, held = _stack(at, looked, docker)
    log = tried("the engine's log", lambda: _log(wishes, at, docker))
    profile = tried("the profile", lambda: _profile(wishes, at, log))
    evidence = Evidence(
        needs_docker=at.kind == "box",
        needs_gpu=_needs_gpu(wishes, at),
        machine=looked,
        compose=composed,
        containers=held,
        memory=tried("/proc/meminfo", host.memory),
        profile=profile,
        configuration=configuration,
        log=log,
    )
    if wishes.before:
        evidence = _before(evidence, looked, wishes, at, docker)
    return _running(evidence, wishes, at, docker)


def _stack(
    at: Site, looked: Machine, docker: Docker
) -> tuple[Compose | Unseen, tuple[Container, ...] | Unseen]:
    if not (at.checkout and looked.docker):
        return NO_STACK, NO_STACK
    found = tried("docker compose config", lambda: stack.compose(docker))
    if isinstance(found, Unseen):
        return found, found
    return found, tried("docker inspect", lambda: stack.containers(docker, found.project))


def _for_docker(at: Site, environ: Mapping[str, str]) -> Mapping[str, str]:
    # Compose prefers the shell to .env, and .env is what runs.
    return {name: value for name, value in environ.items() if name not in at.variables}


def _needs_gpu(wishes: Wishes, at: Site) -> bool:
    if wishes.profile:
        return wishes.profile.stem != site.WITHOUT_GPU
    return at.kind == "box" and at.variables.get("PROFILE") != site.WITHOUT_GPU


def _log(wishes: Wishes, at: Site, docker: Docker) -> EngineLog | Unseen:
    if named := wishes.engine_log or at.log:
        return files.log(named)
    if at.kind != "box":
        return Unseen("no log of an engine is named", "gateway doctor --engine-log FILE")
    said = stack.log(docker)
    return said if isinstance(said, Unseen) else EngineLog("docker compose logs vllm", said)


def _profile(wishes: Wishes, at: Site, log: EngineLog | Unseen) -> Profile | Unseen:
    named = wishes.profile or at.profile
    found = files.profile(named) if named else files.logged_profile(log)
    return found if isinstance(found, Unseen) else replace(found, parsers=wishes.parsers(found.model))


def _before(evidence: Evidence, looked: Machine, wishes: Wishes, at: Site, docker: Docker) -> Evidence:
    disk = tried("the disk", lambda: weights.disk(evidence, at, docker, wishes.sizes))
    asked = tried("the hub", lambda: hub.look(disk, at))
    model_hub, ahead = (asked, None) if isinstance(asked, Unseen) else asked
    return replace(
        evidence,
        image_cuda=tried("docker image inspect", lambda: _image_cuda(evidence.compose, docker)),
        holders=Unseen(looked.gpu_trouble) if looked.gpu_trouble else tried("nvidia-smi", host.holders),
        ports=tried("/proc/net", lambda: _ports(evidence, at)),
        disk=disk,
        hub=model_hub,
        clock=tried("timedatectl", lambda: host.clock(ahead, hub.endpoint(at.environ))),
        limits=IN_CONTAINERS if at.kind == "box" else tried("the limits", host.limits),
        secrets=tried("secrets/", lambda: files.secrets(at.folder, at.environ)),
        data_dir=IN_A_VOLUME
        if at.kind == "box"
        else tried("the data folder", lambda: files.data_dir(_data_dir(evidence, wishes, at))),
    )


def _image_cuda(compose: Compose | Unseen, docker: Docker) -> tuple[int, ...] | Unseen:
    if isinstance(compose, Unseen):
        return compose
    service = compose.services.get(vllm.SERVICE)
    return stack.image_cuda(docker, service.image) if service else Unseen("the stack has no engine")


def _data_dir(evidence: Evidence, wishes: Wishes, at: Site) -> Path:
    if wishes.data_dir:
        return wishes.data_dir
    if evidence.settings:
        return at.folder / evidence.settings.data_dir
    return at.folder / (at.environ.get("GATEWAY_DATA_DIR") or "data")


def _ports(evidence: Evidence, at: Site) -> tuple[Port, ...]:
    taken = listeners.owners()
    published, programs = _published(evidence.containers), OUR_OWN[at.kind]
    return tuple(
        Port(
            number,
            name,
            owner,
            ours=number in published or owner.startswith(programs),
            moves=at.kind == "local",
        )
        for name, number in _wanted(evidence, at).items()
        for owner in [taken.get(number, "")]
    )


def _published(containers: tuple[Container, ...] | Unseen) -> frozenset[int]:
    if isinstance(containers, Unseen):
        return frozenset()
    return frozenset(port.port for one in containers if one.state == "running" for port in one.published)


def _wanted(evidence: Evidence, at: Site) -> Mapping[str, int]:
    """The ports that are listened on, by the names of their settings."""
    if at.kind == "box":
        usual = (
            {"GATEWAY_PORT": 8080, "GRAFANA_PORT": 3000} if at.off else {"HTTP_PORT": 80, "HTTPS_PORT": 443}
        )
        said = {name: at.variables.get(name) or str(port) for name, port in usual.items()}
        return {name: int(port) for name, port in said.items() if port.isdigit()}
    if at.ports:
        return {f"port of {name}": port for name, port in at.ports.items()}
    settings = evidence.settings
    if settings is None:
        return {"GATEWAY_PORT": 8080, "GATEWAY_OPS_PORT": 8081}
    return {"GATEWAY_PORT": settings.port, "GATEWAY_OPS_PORT": settings.ops_port}


def _running(evidence: Evidence, wishes: Wishes, at: Site, docker: Docker) -> Evidence:
    inside = at.kind == "box" and not wishes.ops
    fetch = web.through(docker) if inside else web.direct()
    read = counters.read(
        ops=wishes.ops.rstrip("/") or _ops(evidence, at),
        engines=_engines(evidence, wishes),
        fetch=fetch,
        fetch_engine=web.through(docker) if inside and not wishes.engines else _to_engine(evidence, at),
        seconds=wishes.seconds,
        wait=time.sleep if wishes.running else lambda _: None,
    )
    prometheus = wishes.prometheus.rstrip("/") or (site.PROMETHEUS_OF_BOX if inside else "")
    asked = web.direct() if wishes.prometheus else fetch
    urls = [one.url for one in read.engines]
    only = not wishes.before and not wishes.engines
    clock = evidence.clock
    if read.ahead and isinstance(clock, Clock) and clock.ahead_seconds is None:
        clock = replace(clock, ahead_seconds=read.ahead[0], against=read.ahead[1])
    return replace(
        evidence,
        engine_environment=tried(
            "the engine's environment", lambda: _engine_environment(evidence.compose, urls)
        ),
        clock=clock,
        expects_gateway=only or bool(wishes.ops),
        expects_engine=not wishes.before or bool(wishes.engines) or isinstance(read.ready, Ready),
        configuration=_known(evidence.configuration, at, running=isinstance(read.ready, Ready)),
        ready=read.ready,
        gateway=read.gateway,
        engines=read.engines
        or Unseen("no engine is configured", "gateway doctor --engine http://127.0.0.1:8000"),
        watched=tried("Prometheus", lambda: counters.watched(prometheus, asked))
        if prometheus and wishes.running
        else Unseen("no Prometheus is named", "gateway doctor --prometheus http://127.0.0.1:9090"),
    )


def _engine_environment(compose: Compose | Unseen, urls: Sequence[str]) -> Mapping[str, str] | Unseen:
    """What vLLM was told by variables: in the stack's files, or by its process on this machine."""
    if isinstance(compose, Compose) and vllm.SERVICE in compose.services:
        return compose.services[vllm.SERVICE].environment
    for url in map(urlsplit, urls):
        here = url.hostname in {"127.0.0.1", "localhost", "::1"}
        if here and url.port and (found := listeners.environment(url.port, "VLLM_")) is not None:
            return found
    return Unseen("the engine's environment cannot be seen from here")


def _known(configuration: Configuration | Unseen, at: Site, *, running: bool) -> Configuration | Unseen:
    """The settings, unless a gateway runs and this shell holds none at all: then they are not its."""
    if isinstance(configuration, Unseen) or configuration.settings or configuration.file or not running:
        return configuration
    return configuration if any(name.startswith("GATEWAY_") for name in at.environ) else ELSEWHERE


def _ops(evidence: Evidence, at: Site) -> str:
    if at.kind == "box":
        return site.OPS_OF_BOX
    if "ops" in at.ports:
        return f"http://127.0.0.1:{at.ports['ops']}"
    settings = evidence.settings
    host_name, port = (settings.ops_host, settings.ops_port) if settings else ("127.0.0.1", 8081)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host_name, host_name)  # noqa: S104 nobody listens by this
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _engines(evidence: Evidence, wishes: Wishes) -> tuple[str, ...]:
    if wishes.engines:
        return tuple(url.rstrip("/").removesuffix("/v1") for url in wishes.engines)
    settings = evidence.settings
    if settings is None:
        return ()
    named = [url for model in settings.models for url in model.engines] or [settings.upstream_url or ""]
    return tuple(dict.fromkeys(filter(None, named)))


def _to_engine(evidence: Evidence, at: Site) -> web.Fetch:
    settings = evidence.settings
    key = settings.upstream_api_key.get_secret_value() if settings and settings.upstream_api_key else ""
    key = key or at.environ.get("GATEWAY_UPSTREAM_API_KEY", "")
    headers = {"authorization": f"Bearer {key}"} if key else None
    return web.direct(headers, settings.engine.ca_file if settings else "")
