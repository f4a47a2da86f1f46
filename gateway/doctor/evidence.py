"""All that the doctor looks at, as values: a judge sees nothing else. What was not to be had is `Unseen`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import NOT_ASKED, Unseen
from gateway.doctor.machine import Machine
from gateway.doctor.profile import Profile
from gateway.settings import Settings


@dataclass(frozen=True)
class Published:
    """A port by which a service is reached from outside of its networks; no `address`: on all of the host."""

    port: int
    target: int
    address: str = ""


@dataclass(frozen=True)
class Service:
    """One service of the compose files, with the variables filled in.

    `cards`: which of the host's NVIDIA cards it gets, counted from 0; None: all. Names are not resolved.
    """

    name: str
    image: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    cards: tuple[int, ...] | Unseen | None = None


@dataclass(frozen=True)
class Compose:
    """What the compose files come to."""

    project: str
    services: Mapping[str, Service]


@dataclass(frozen=True)
class Container:
    """One of the stack's containers, running or not."""

    service: str
    state: str
    exit_code: int = 0
    restarts: int = 0
    out_of_memory: bool = False
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Holder:
    """A process that has memory of a GPU; `memory` in MiB, None where the driver does not say."""

    pid: int
    name: str
    memory: int | None


@dataclass(frozen=True)
class Memory:
    """The system's memory in MiB. `available` is what vLLM counts as free where the GPU shares it."""

    total: int
    available: int
    cached: int
    swap_total: int
    swap_free: int


@dataclass(frozen=True)
class Configuration:
    """What the gateway's settings come to; `settings` is None where they cannot be used."""

    settings: Settings | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    file: Path | None = None


@dataclass(frozen=True)
class Port:
    """A port by its setting's name. `owner` has it now, or nobody; `moves`: `make up` takes a free one."""

    number: int
    setting: str
    owner: str = ""
    ours: bool = False
    moves: bool = False


@dataclass(frozen=True)
class Disk:
    """Room for the weights, in bytes. `there`: the model lies in the cache, or in its folder, already.

    `local`: `model` is a folder, and `missing` says why it will not do. `known_bytes`: as the model's makers
    say, None where only its name tells.
    """

    folder: Path
    free_bytes: int
    there: bool | Unseen
    model: str
    image_there: bool
    local: bool = False
    missing: str = ""
    known_bytes: int | None = None


@dataclass(frozen=True)
class Hub:
    """What the model hub said when it was asked for the model without and with the token.

    `gated` is None where the answer does not tell; `status` is that without the token, `access` that with it,
    0 for none. `local`: the model is a folder, and was not asked for.
    """

    model: str
    gated: bool | None
    token: bool
    access: int
    there: bool | Unseen
    status: int = 0
    local: bool = False


@dataclass(frozen=True)
class Clock:
    """How far this clock is ahead of another's, in seconds, and whether the system keeps it synchronised."""

    ahead_seconds: float | None
    against: str
    synchronised: bool | None


@dataclass(frozen=True)
class Limits:
    """What the system allows a process here. `pids` are those left in the tightest group; None: no limit."""

    open_files: int
    most_open_files: int
    pids_left: int | None


@dataclass(frozen=True)
class SecretFile:
    """One secret as it lies there, never its text. `reachable` says whether others of this host get to it."""

    name: str
    mode: int
    length: int
    usual: bool
    reachable: bool


@dataclass(frozen=True)
class DataDir:
    """Where the gateway keeps its databases; `trouble`: why it cannot be written to; `there`: it is made."""

    folder: Path
    trouble: str
    filesystem: str
    free_bytes: int
    there: bool = True


@dataclass(frozen=True)
class Scrape:
    """The counters of one process, read twice so many seconds apart."""

    first: Exposition
    last: Exposition
    seconds: float

    def grown(self, name: str, **labels: str) -> float:
        """By how much a counter grew between the two."""
        return self.last.sum(name, **labels) - self.first.sum(name, **labels)


@dataclass(frozen=True)
class Ready:
    """What `/readyz` answered; `status` 0 where nothing did."""

    url: str
    status: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Engine:
    """One engine: the names it lists, and its counters."""

    url: str
    models: tuple[str, ...] | Unseen
    scrape: Scrape | Unseen


@dataclass(frozen=True)
class EngineLog:
    """What the engine wrote, its newest lines last, and where it was read."""

    origin: str
    text: str


@dataclass(frozen=True)
class Watched:
    """What Prometheus has kept: alerts that fire, and each model's highest counts of the last day."""

    url: str
    firing: tuple[str, ...]
    most_running: float | None
    most_waiting: float | None
    fullest_cache: float | None


@dataclass(frozen=True)
class Evidence:
    """One look. `needs_docker` and `needs_gpu`: whether what is to run here runs on them.

    `expects_gateway`, `expects_engine`: one that does not answer is a fault, and not yet to be started.
    """

    needs_docker: bool = False
    needs_gpu: bool = False
    expects_gateway: bool = False
    expects_engine: bool = False
    machine: Machine | Unseen = NOT_ASKED
    compose: Compose | Unseen = NOT_ASKED
    containers: tuple[Container, ...] | Unseen = NOT_ASKED
    engine_environment: Mapping[str, str] | Unseen = NOT_ASKED
    image_cuda: tuple[int, ...] | Unseen = NOT_ASKED
    holders: tuple[Holder, ...] | Unseen = NOT_ASKED
    memory: Memory | Unseen = NOT_ASKED
    profile: Profile | Unseen = NOT_ASKED
    configuration: Configuration | Unseen = NOT_ASKED
    ports: tuple[Port, ...] | Unseen = NOT_ASKED
    disk: Disk | Unseen = NOT_ASKED
    hub: Hub | Unseen = NOT_ASKED
    clock: Clock | Unseen = NOT_ASKED
    limits: Limits | Unseen = NOT_ASKED
    secrets: tuple[SecretFile, ...] | Unseen = NOT_ASKED
    data_dir: DataDir | Unseen = NOT_ASKED
    ready: Ready | Unseen = NOT_ASKED
    gateway: Scrape | Unseen = NOT_ASKED
    engines: tuple[Engine, ...] | Unseen = NOT_ASKED
    log: EngineLog | Unseen = NOT_ASKED
    watched: Watched | Unseen = NOT_ASKED

    @property
    def settings(self) -> Settings | None:
        """The gateway's settings; None where they are not known, or cannot be used."""
        found = self.configuration
        return found.settings if isinstance(found, Configuration) else None
