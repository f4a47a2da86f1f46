"""Which metrics exist: those of the gateway, of vLLM, and of the exporters, each from the thing itself."""

import re
from collections.abc import Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.local import engine
from deploy.local.problem import Problem
from tests.grafana.exporters import exposition, series
from tests.test_metrics import touched

# Prometheus' own, and what blackbox exporter shows of any https address (asserted in test_site.py).
OF_PROMETHEUS = frozenset({"up", "ALERTS"})
OF_PROBES = frozenset({"probe_success", "probe_ssl_earliest_cert_expiry"})

_DEFINED = re.compile(r'_(counter|gauge|histogram)_cls\(\s*name="(vllm:[a-z0-9_:]+)"')
_PROMQL_WORDS = frozenset(
    {
        "and",
        "bool",
        "by",
        "group_left",
        "group_right",
        "ignoring",
        "inf",
        "offset",
        "on",
        "or",
        "unless",
        "without",
    }
)


def of_text(exposition: str) -> set[str]:
    """The names of all series in Prometheus' text format."""
    return {sample.name for family in text_string_to_metric_families(exposition) for sample in family.samples}


def of_gateway() -> set[str]:
    """The names that the gateway shows once everything has happened."""
    return of_text(touched().render().decode())


def of_vllm() -> set[str]:
    """The names that the engine's source defines, installed but not started. Skips where it cannot be."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    (package,) = engine.folder().glob("lib/python3*/site-packages/vllm")
    names: set[str] = set()
    for source in sorted(package.glob("v1/**/*.py")):
        for kind, name in _DEFINED.findall(source.read_text(encoding="utf-8")):
            names |= _series(kind, name)
    assert len(names) > 50, "vLLM defines its metrics in another way than this test reads"
    return names


def of_gpus() -> set[str]:
    """The names that NVIDIA's exporter shows by default, as far as anything here reads them."""
    return series(exposition("dcgm"))


def in_promql(expression: str) -> set[str]:
    """The metrics that a PromQL expression reads."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', expression)
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", text)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\w+", " ", text)
    words = re.findall(r"(?<![\w.:])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])", text)
    return {word for word in words if word.lower() not in _PROMQL_WORDS}


def missing(expressions: Iterable[str], known: set[str]) -> set[str]:
    """What these expressions read and nothing shows."""
    return {name for expression in expressions for name in in_promql(expression)} - known


def _series(kind: str, name: str) -> set[str]:
    if kind == "counter":
        return {f"{name}_total"}
    if kind == "histogram":
        return {f"{name}_{part}" for part in ("bucket", "count", "sum")}
    return {name}
