"""The dashboards as files: their panels, queries, metric names, and what some queries wait for.

Whoever has a running Prometheus can ask it `queries(load(name))`; nothing here starts one.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent.parent / "grafana"
NAMES = ("overview", "engine", "keys")

Dashboard = dict[str, Any]
Panel = dict[str, Any]

# What must have happened, or be there, before a query has series: the first part that it holds decides.
WAITS_FOR = {
    "DCGM_FI_": "a GPU exporter",
    "vllm:spec_decode": "speculative decoding",
    "probe_": "a site that Caddy serves",
    'status_class="5xx"': "a call that failed",
    'status_class="4xx"': "a call that was refused",
    "invalid_api_key": "a call that was refused",
    'kind="cached"': "a prompt that the prefix cache knows",
    'kind="reasoning"': "an answer with reasoning",
    "gpu_energy": "a GPU exporter, or a driver on the gateway's own host",
    "gateway_budget_used": "a key with a budget",
    "gateway_limited": "a call that a limit refused",
    "gateway_client_disconnects": "a caller who left",
    "gateway_fields_dropped": "a call with a field that callers may not set",
    "ratio_rate5m": "calls spread over several scrapes",
    "share_rate5m": "calls spread over several scrapes",
}
WORDS = {
    "and",
    "or",
    "unless",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "bool",
    "offset",
}


class Query(NamedTuple):
    """One query of a panel as Prometheus takes it."""

    panel: str
    expr: str


def load(name: str) -> Dashboard:
    """A dashboard by the name of its file."""
    dashboard: Dashboard = json.loads((FOLDER / "dashboards" / f"{name}.json").read_text())
    return dashboard


def everything(dashboard: Dashboard) -> Iterator[Panel]:
    """All panels, rows and what they hold included, from top to bottom."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def panels(dashboard: Dashboard) -> Iterator[Panel]:
    """The panels that show something."""
    return (panel for panel in everything(dashboard) if panel["type"] != "row")


def queries(dashboard: Dashboard, window: str = "1m") -> list[Query]:
    """All queries without variables: those of the dashboard become All, those of Grafana `window`."""
    return [
        Query(panel["title"], filled(target["expr"], dashboard, window))
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def filled(expr: str, dashboard: Dashboard, window: str) -> str:
    """An expression without variables."""
    values = {variable["name"]: variable["allValue"] for variable in dashboard["templating"]["list"]}
    values |= {"__rate_interval": window, "__range": window}
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expr)


def waits_for(expr: str) -> str:
    """What a query has no series without, as "a GPU exporter"; "" if it has them on any stack in use."""
    if expr.endswith("or vector(0)"):
        return ""
    return next((reason for part, reason in WAITS_FOR.items() if part in expr), "")


def metrics(expr: str) -> set[str]:
    """The names of the series that an expression reads."""
    bare = re.sub(r'"[^"]*"', "", expr)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    return set(re.findall(r"(?<![\w:.$])[a-zA-Z_:][\w:]*(?![\w:]|\s*\()", bare)) - WORDS
