"""A fresh Grafana finds its data source and its dashboards by itself."""

from typing import Any

import pytest
import yaml

from tests.grafana import panels
from tests.prometheus.programs import CONFIGURATION

PROVISIONING = panels.FOLDER / "provisioning"
COMPOSE = panels.FOLDER.parent / "deploy" / "monitoring.yaml"


def provisioned(kind: str) -> dict[str, Any]:
    """The one file of its kind."""
    [file] = (PROVISIONING / kind).glob("*.yaml")
    document: dict[str, Any] = yaml.safe_load(file.read_text())
    assert document.pop("apiVersion") == 1
    return document


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    """Grafana as the stack runs it."""
    service: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]["grafana"]
    return service


def test_the_source_is_named_as_the_panels_name_it() -> None:
    """By service name, never localhost: inside a container that is Grafana itself."""
    [source] = provisioned("datasources")["datasources"]
    assert (source["uid"], source["type"]) == ("prometheus", "prometheus")
    assert source["url"] == "http://prometheus-ops:9090"
    assert source["isDefault"]
    assert not source["editable"]


def test_the_source_knows_how_often_prometheus_scrapes() -> None:
    """Otherwise a window of one panel's pixel could hold a single sample, and its rate would be empty."""
    [source] = provisioned("datasources")["datasources"]
    prometheus = yaml.safe_load((CONFIGURATION / "prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_the_name_of_the_source_exists_on_a_network_of_grafana(service: dict[str, Any]) -> None:
    """The alias is Prometheus' own, where both are."""
    networks = yaml.safe_load(COMPOSE.read_text())["services"]["prometheus"]["networks"]
    aliased = {
        name for name, network in networks.items() if "prometheus-ops" in (network or {}).get("aliases", ())
    }
    assert aliased & set(service["networks"])


def test_the_dashboards_are_read_from_where_the_stack_puts_them(service: dict[str, Any]) -> None:
    """And none can be lost or changed by a click."""
    [provider] = provisioned("dashboards")["providers"]
    mounted = dict(
        volume.removesuffix(":ro").split(":") for volume in service["volumes"] if volume.startswith("../")
    )
    assert provider["type"] == "file"
    assert provider["options"]["path"] == mounted["../grafana/dashboards"]
    assert mounted["../grafana/provisioning"] == "/etc/grafana/provisioning"
    assert provider["disableDeletion"]
    assert not provider["allowUiUpdates"]


def test_the_first_page_is_the_overview(service: dict[str, Any]) -> None:
    """Who opens Grafana wants to know whether all is well."""
    home = service["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    [provider] = provisioned("dashboards")["providers"]
    assert home == f"{provider['options']['path']}/overview.json"
    assert panels.load("overview")["title"] == "Overview"
