"""Dashboards ask for metrics that somebody serves, by their present names."""

import re

import pytest
import yaml

from tests.grafana import panels
from tests.grafana.exporters import exposition, series
from tests.prometheus.programs import RULES
from tests.test_metrics import touched

OF_PROMETHEUS = {"up", "ALERTS"}

# What old dashboards for vLLM still ask for: 0.32 serves none of it.
STALE = (
    "gpu_cache_usage_perc",
    "cpu_cache_usage_perc",
    "gpu_prefix_cache",
    "vllm:time_per_output_token_seconds",
    "num_requests_swapped",
    "num_preemption_total",
    "avg_prompt_throughput_toks_per_s",
    "avg_generation_throughput_toks_per_s",
    "spec_decode_draft_acceptance_rate",
    "spec_decode_efficiency",
)
# Promised for later: a panel that asks for one today would stay empty without a word.
NOT_YET = (
    "gateway_queue_wait_seconds",
    "gateway_queue_depth",
    "gateway_batch_lines_total",
)


def recorded() -> set[str]:
    """What the stack's recording rules make."""
    groups = [group for file in RULES.glob("*.yml") for group in yaml.safe_load(file.read_text())["groups"]]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def served() -> set[str]:
    """What the gateway, the engine and the exporters serve, and what Prometheus makes of it."""
    others = (series(exposition(name)) for name in ("vllm", "node", "dcgm", "blackbox"))
    return OF_PROMETHEUS.union(recorded(), series(touched().render().decode()), *others)


@pytest.mark.parametrize("name", panels.NAMES)
def test_every_metric_of_a_dashboard_is_served(name: str) -> None:
    """By the gateway as it is, by vLLM 0.32, by an exporter, or by a recording rule."""
    dashboard = panels.load(name)
    asked = {metric for query in panels.queries(dashboard) for metric in panels.metrics(query.expr)}
    assert asked - served() == set()
    assert len(asked) > 5


@pytest.mark.parametrize("name", panels.NAMES)
def test_variables_and_annotations_ask_for_metrics_that_are_served(name: str) -> None:
    """An empty choice would leave every panel on All."""
    dashboard = panels.load(name)
    for variable in dashboard["templating"]["list"]:
        asked = set(re.findall(r"\b(?:gateway_|vllm:)\w+", variable["definition"]))
        assert asked
        assert asked <= served()
    for annotation in dashboard["annotations"]["list"]:
        assert panels.metrics(annotation["target"]["expr"]) <= OF_PROMETHEUS


@pytest.mark.parametrize("name", panels.NAMES)
def test_no_metric_is_of_yesterday_or_of_tomorrow(name: str) -> None:
    """Neither in a query nor in a variable."""
    text = (panels.FOLDER / "dashboards" / f"{name}.json").read_text()
    assert [metric for metric in (*STALE, *NOT_YET) if metric in text] == []


def test_what_is_of_yesterday_or_of_tomorrow_is_not_served() -> None:
    """Once it is, these lists are what is stale."""
    assert [old for old in STALE for metric in served() if old in metric] == []
    assert set(NOT_YET) & {name.removesuffix("_count") for name in served()} == set()


@pytest.mark.parametrize("part", panels.WAITS_FOR)
def test_every_reason_for_silence_is_some_query_s(part: str) -> None:
    """A reason that nobody needs would excuse the next query that is wrong."""
    asked = [query.expr for name in panels.NAMES for query in panels.queries(panels.load(name))]
    assert any(part in expr and panels.waits_for(expr) == panels.WAITS_FOR[part] for expr in asked)


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ('min(up{job="gateway"})', {"up"}),
        ("sum by (le) (rate(a_bucket[1m])) / on () group_left () sum(b:c:d)", {"a_bucket", "b:c:d"}),
        ('count(A{x="y"}) or label_replace(vector(0), "a", "b", "", "") unless on () A{}', {"A"}),
        ('1 - avg(rate(node_cpu{mode="idle"}[5m])) > 0.5e3', {"node_cpu"}),
    ],
)
def test_names_are_read_from_expressions(expr: str, names: set[str]) -> None:
    """Neither functions nor labels are metrics."""
    assert panels.metrics(expr) == names
