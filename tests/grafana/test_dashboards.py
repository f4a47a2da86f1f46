"""The dashboards are whole, readable and alike, before any Grafana has seen them."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.grafana import panels, schema
from tests.grafana.panels import Dashboard, Panel
from tests.prometheus.programs import RULES

ROOT = panels.FOLDER.parent
PAGE = ROOT / "docs" / "dashboards.md"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
FILES = sorted((panels.FOLDER / "dashboards").glob("*"))
COLUMNS = 24


@pytest.fixture(params=panels.NAMES)
def dashboard(request: pytest.FixtureRequest) -> Dashboard:
    """Each of them."""
    return panels.load(request.param)


def titled(name: str) -> list[str]:
    """The titles of a dashboard's panels, from top to bottom."""
    return [panel["title"] for panel in panels.panels(panels.load(name))]


EVERY_PANEL = [
    pytest.param(panel, id=f"{name}-{panel['title']}")
    for name in panels.NAMES
    for panel in panels.panels(panels.load(name))
]


def sources(value: Any) -> Iterator[Any]:
    """Whatever is said to be a data source, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == "datasource" else sources(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sources(inner)


def test_these_are_all_files() -> None:
    """One that nobody tests would be shown all the same."""
    assert [file.name for file in FILES] == sorted(f"{name}.json" for name in panels.NAMES)


def test_uids_and_titles_are_their_own() -> None:
    """Bookmarks hold the uid: it never changes, and Grafana refuses a second one."""
    found = {name: panels.load(name) for name in panels.NAMES}
    assert {name: dashboard["uid"] for name, dashboard in found.items()} == {
        name: f"vllm-gateway-{name}" for name in panels.NAMES
    }
    assert len({dashboard["title"] for dashboard in found.values()}) == len(found)
    assert not any("id" in dashboard for dashboard in found.values())


def test_every_query_asks_our_one_source(dashboard: Dashboard) -> None:
    """By the uid that is provisioned; a file made by export would hold an input or a foreign one."""
    found = list(sources(dashboard))
    assert len(found) > sum(1 for _ in panels.panels(dashboard))
    assert [source for source in found if source != SOURCE] == []
    text = json.dumps(dashboard)
    assert [part for part in ("${DS_", "__inputs", "__requires", "-- Mixed --") if part in text] == []


def test_all_look_at_the_same_moment(dashboard: Dashboard) -> None:
    """Refreshed every 10 s, in the reader's time zone, with one crosshair over all panels."""
    settings = {name: dashboard[name] for name in ("refresh", "timezone", "graphTooltip", "schemaVersion")}
    assert settings == {"refresh": "10s", "timezone": "browser", "graphTooltip": 1, "schemaVersion": 41}
    assert dashboard["time"]["to"] == "now"
    [link] = dashboard["links"]
    assert set(link["tags"]) <= set(dashboard["tags"])


def test_grafana_knows_all_that_is_said(dashboard: Dashboard) -> None:
    """It would pass over a slip of the pen in silence."""
    assert list(schema.unknown(dashboard)) == []


def test_a_slip_of_the_pen_is_found(dashboard: Dashboard) -> None:
    """In options, in fields, in overrides, in values."""
    first = next(panels.panels(dashboard))
    first["options"]["colourMode"] = "value"
    first["fieldConfig"]["defaults"] |= {"unit": "seconds", "units": "s"}
    first["fieldConfig"]["overrides"] = [{"properties": [{"id": "custom.lineStile", "value": {}}]}]
    assert {slip.rpartition(": ")[2] for slip in schema.unknown(dashboard)} == {
        "colourMode", "seconds", "units", "lineStile",
    }  # fmt: skip


def test_panels_fill_the_width_and_none_covers_another(dashboard: Dashboard) -> None:
    """Each cell of the grid, down to the last row, belongs to exactly one panel."""
    cells = Counter(
        (place["x"] + column, place["y"] + line)
        for place in (panel["gridPos"] for panel in panels.everything(dashboard))
        for column in range(place["w"])
        for line in range(place["h"])
    )
    height = max(line for _, line in cells) + 1
    assert cells == Counter((column, line) for column in range(COLUMNS) for line in range(height))


def test_ids_and_titles_of_panels_are_their_own(dashboard: Dashboard) -> None:
    """Links and annotations tell panels apart by id, people by title."""
    found = list(panels.everything(dashboard))
    assert len({panel["id"] for panel in found}) == len(found)
    assert len({panel["title"] for panel in found}) == len(found)


def test_variables_are_asked_for_and_used(dashboard: Dashboard) -> None:
    """Each has values from the source and All; none is offered that changes nothing, none is missing."""
    offered = {variable["name"] for variable in dashboard["templating"]["list"]}
    text = " ".join(target["expr"] for panel in panels.panels(dashboard) for target in panel["targets"])
    assert set(re.findall(r"\$(\w+)", text)) - {"__rate_interval", "__range"} == offered
    for variable in dashboard["templating"]["list"]:
        assert variable["definition"] == variable["query"]["query"]
        assert variable["definition"].startswith("label_values(")
        assert variable["allValue"] == ".*"
        assert variable["label"]
        assert variable["description"]


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_explains_itself(panel: Panel) -> None:
    """Title, unit, and a description of what it shows and when to worry."""
    assert panel["title"]
    assert len(panel["description"]) > 60
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_thresholds_begin_at_the_bottom_and_rise(panel: Panel) -> None:
    """A number on its own has them; on a graph they are drawn or left out."""
    thresholds = panel["fieldConfig"]["defaults"].get("thresholds")
    assert thresholds or panel["type"] == "timeseries"
    if thresholds:
        first, *rest = [step["value"] for step in thresholds["steps"]]
        assert first is None
        assert rest == sorted(set(rest))
    if panel["type"] == "timeseries":
        assert bool(thresholds) == ("thresholdsStyle" in panel["fieldConfig"]["defaults"]["custom"])


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_series_have_readable_names(panel: Panel) -> None:
    """No legend shows the query itself, and no two queries of a panel have one name."""
    names = [target.get("legendFormat", "") for target in panel["targets"]]
    if panel["type"] in ("timeseries", "bargauge"):
        assert all(names)
        assert len(set(names)) == len(names)
        shown = {label for name in names for label in re.findall(r"\{\{(\w+)\}\}", name)}
        assert all(label in json.dumps(panel["targets"]).replace("{{", "") for label in shown)
    named = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
    dynamic = any("{{" in name for name in names)
    assert dynamic or panel["type"] == "table" or named <= set(names)


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_rates_follow_the_scrapes(panel: Panel) -> None:
    """A fixed window is empty or blurred once somebody zooms; a number for the chosen time takes it all."""
    windows = {window for target in panel["targets"] for window in re.findall(r"\[(.*?)\]", target["expr"])}
    over_time = panel["type"] == "timeseries"
    assert windows <= ({"$__rate_interval"} if over_time else {"$__range"})
    for target in panel["targets"]:
        assert target.get("instant", False) != over_time
        assert target.get("range", False) == over_time


def test_the_documentation_tells_every_panel() -> None:
    """All of them, by dashboard and in their order, and no other."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    told = {
        section.partition("\n")[0].lower(): re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)
        for section in sections
    }
    assert {name: told[name] for name in panels.NAMES} == {name: titled(name) for name in panels.NAMES}


def test_panels_that_alerts_and_runbooks_name_exist() -> None:
    """Who is woken by one finds what it tells them to look at."""
    dashboards = {panels.load(name)["title"]: titled(name) for name in panels.NAMES}
    pages = [*RULES.glob("*.yml"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = re.sub(r"\s+", " ", page.read_text())
        for panel, named in re.findall(r"panel ([A-Z][\w ,-]*?) of the dashboard ([A-Z]\w+)", text):
            assert panel in dashboards[named], page.name
        assert set(re.findall(r"dashboard ([A-Z]\w+)", text)) <= set(dashboards), page.name
