"""Evidence for judges, faked where only a figure counts and recorded where a program's own words do."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.doctor.evidence import Configuration, Engine, Scrape
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import Finding
from gateway.doctor.machine import Gpu, Machine
from gateway.doctor.profile import Profile
from gateway.settings import load

RECORDED = Path(__file__).with_name("recorded")
VLLM = Path(__file__).parents[1] / "grafana" / "expositions" / "vllm.txt"

RTX_5090 = Gpu("NVIDIA GeForce RTX 5090", 32607, 500, (580, 95, 5))
RTX_3090 = Gpu("NVIDIA GeForce RTX 3090", 24576, 10, (580, 95, 5))
GB10 = Gpu("NVIDIA GB10", None, None, (580, 95, 5))
WELL = Machine(
    docker_trouble="",
    engine=(28, 3, 0),
    compose=(2, 38, 2),
    data_root=Path("/var/lib/docker"),
    rootless=False,
    gpu_in_docker=True,
    gpu_trouble="",
    gpus=(RTX_5090,),
    memory=64_000,
    available=50_000,
    cuda=(13, 0),
)
SPARK = replace(WELL, gpus=(GB10,), memory=124_600, available=115_000)


def machine(**changed: Any) -> Machine:
    """A box that lacks nothing, but for what is changed."""
    return replace(WELL, **changed)


def profile(file: str = "/box/mine.yaml", **flags: Any) -> Profile:
    """A profile with these flags, underscores for dashes."""
    return Profile({name.replace("_", "-"): value for name, value in flags.items()}, Path(file))


def configuration(folder: Path, text: str, **environ: str) -> Configuration:
    """Settings as `gateway check` has them."""
    file = folder / "gateway.toml"
    file.write_text(text)
    loaded = load(file, environ)
    return Configuration(loaded.settings, (), loaded.warnings, file)


def exposition(samples: Mapping[str, float]) -> Exposition:
    """The series, each written with its labels as in `name{label="value"}`."""
    return Exposition("".join(f"{series} {value}\n" for series, value in samples.items()))


def scrape(
    last: Mapping[str, float], first: Mapping[str, float] | None = None, seconds: float = 5.0
) -> Scrape:
    """Two reads; the first as the last where nothing moved."""
    return Scrape(exposition(last if first is None else first), exposition(last), seconds)


def engine(
    last: Mapping[str, float], first: Mapping[str, float] | None = None, seconds: float = 5.0
) -> Engine:
    """An engine with these counters."""
    return Engine("http://vllm:8000", ("qwen",), scrape(last, first, seconds))


def only(found: Iterable[Finding]) -> Finding:
    """The one finding."""
    [finding] = list(found)
    return finding


def severities(found: Iterable[Finding]) -> list[str]:
    """How bad each is."""
    return [finding.severity for finding in found]
