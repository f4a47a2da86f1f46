"""Which keys and values Grafana 12 knows in a dashboard, as far as ours use them.

From the types that Grafana publishes (packages/grafana-schema: dashboard, common, panelcfg and dataquery of
each plugin). Grafana ignores what it does not know: a slip would show nothing and say nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

UNITS = {
    "none", "short", "percent", "percentunit", "s", "reqps", "celsius", "watt", "joule",
    "count:tokens", "count:tokens/s", "count:fields/s",
}  # fmt: skip
COLOURS = {"text", "green", "light-green", "yellow", "red", "blue", "light-blue"}

DASHBOARD = {
    "uid", "title", "description", "tags", "schemaVersion", "version", "editable", "graphTooltip", "timezone",
    "time", "refresh", "timepicker", "annotations", "links", "templating", "panels",
}  # fmt: skip
VARIABLE = {
    "name", "label", "description", "type", "datasource", "definition", "query", "refresh", "sort", "multi",
    "includeAll", "allValue", "current",
}  # fmt: skip
ANNOTATION = {
    "name", "datasource", "enable", "hide", "iconColor", "target", "titleFormat", "tagKeys",
}  # fmt: skip
ROW = {"id", "type", "title", "gridPos", "collapsed", "panels"}
PANEL = {
    "id", "type", "title", "description", "gridPos", "datasource", "fieldConfig", "options", "targets",
    "transformations",
}  # fmt: skip
TARGET = {"refId", "datasource", "editorMode", "expr", "legendFormat", "range", "instant", "format"}
FIELD = {
    "unit", "min", "max", "decimals", "color", "noValue", "mappings", "thresholds", "custom",
}  # fmt: skip
GRAPH = {
    "drawStyle", "lineWidth", "lineStyle", "fillOpacity", "showPoints", "spanNulls", "stacking",
    "thresholdsStyle",
}  # fmt: skip
REDUCED = {"reduceOptions", "orientation", "text"}
OPTIONS: Mapping[str, set[str]] = {
    "timeseries": {"legend", "tooltip", "timezone"},
    "stat": REDUCED | {"textMode", "colorMode", "graphMode", "justifyMode", "wideLayout"},
    "bargauge": REDUCED
    | {
        "displayMode", "valueMode", "namePlacement", "showUnfilled", "sizing", "minVizWidth", "minVizHeight",
        "maxVizHeight",
    },
    "table": {"showHeader", "cellHeight", "sortBy", "frameIndex"},
}  # fmt: skip
CUSTOM: Mapping[str, set[str]] = {
    "timeseries": GRAPH,
    "table": {"align", "cellOptions", "inspect"},
    "stat": set(),
    "bargauge": set(),
}
TRANSFORMATIONS: Mapping[str, set[str]] = {
    "merge": set(),
    "organize": {"excludeByName", "indexByName", "renameByName"},
    "filterFieldsByName": {"include"},
}
CHOICES: Mapping[str, set[Any]] = {
    "drawStyle": {"line"},
    "showPoints": {"never"},
    "displayMode": {"table", "basic"},
    "placement": {"bottom"},
    "colorMode": {"background", "value"},
    "graphMode": {"none"},
    "textMode": {"value"},
    "justifyMode": {"auto"},
    "orientation": {"auto", "horizontal"},
    "valueMode": {"color"},
    "namePlacement": {"left"},
    "sizing": {"auto"},
    "cellHeight": {"sm"},
    "color": COLOURS,
    "fixedColor": COLOURS,
    "unit": UNITS,
}


def unknown(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Where a dashboard says something that Grafana does not know; nothing if all is known."""
    yield from beyond("dashboard", dashboard, DASHBOARD)
    for variable in dashboard["templating"]["list"]:
        yield from beyond(variable["name"], variable, VARIABLE)
    for annotation in dashboard["annotations"]["list"]:
        yield from beyond(annotation["name"], annotation, ANNOTATION)
    for panel in dashboard["panels"]:
        yield from unknown_in_row(panel) if panel["type"] == "row" else unknown_in(panel)
    yield from (f"{key}: {value}" for key, value in leaves(dashboard["panels"]) if not chosen(key, value))


def unknown_in_row(row: Mapping[str, Any]) -> Iterator[str]:
    """The same of a row and the panels that it hides."""
    yield from beyond(row["title"], row, ROW)
    for panel in row["panels"]:
        yield from unknown_in(panel)


def unknown_in(panel: Mapping[str, Any]) -> Iterator[str]:
    """The same of one panel."""
    title, kind = panel["title"], panel["type"]
    defaults = panel["fieldConfig"]["defaults"]
    yield from beyond(title, panel, PANEL)
    yield from beyond(title, panel["options"], OPTIONS[kind])
    yield from beyond(title, panel["fieldConfig"], {"defaults", "overrides"})
    yield from beyond(title, defaults, FIELD)
    yield from beyond(title, defaults.get("custom", {}), CUSTOM[kind])
    for target in panel["targets"]:
        yield from beyond(title, target, TARGET)
    for step in panel.get("transformations", ()):
        yield from beyond(title, step["options"], TRANSFORMATIONS[step["id"]])
    for override in panel["fieldConfig"]["overrides"]:
        written = {name["id"].removeprefix("custom.") for name in override["properties"]}
        yield from beyond(title, dict.fromkeys(written), FIELD | CUSTOM[kind])


def beyond(where: str, written: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    """The keys that are not known."""
    yield from (f"{where}: {key}" for key in written if key not in known)


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """All keys whose value is no container, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner) if isinstance(inner, Mapping | list) else ((key, inner),)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


def chosen(key: str, value: Any) -> bool:
    """Whether Grafana knows this value of the key, where it knows but a few."""
    return key not in CHOICES or value in CHOICES[key]
