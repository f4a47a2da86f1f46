"""Prometheus' configuration: valid, every five seconds, and listing the site that SITE names."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prometheus.programs import CONFIGURATION, RULES, Programs


def configuration() -> dict[str, Any]:
    """prometheus.yml as it is read."""
    loaded: dict[str, Any] = yaml.safe_load((CONFIGURATION / "prometheus.yml").read_text())
    return loaded


def test_prometheus_accepts_its_configuration_and_its_rules(programs: Programs) -> None:
    """promtool finds no fault, nor any rule twice."""
    checked = {"config": [CONFIGURATION / "prometheus.yml"], "rules": sorted(RULES.glob("*.yml"))}
    for kind, files in checked.items():
        done = programs.run("promtool", "check", kind, *files)
        assert done.returncode == 0, done.stdout
        assert "duplicate" not in done.stdout, done.stdout


def test_the_alerts_fire_and_keep_silent_as_promised(programs: Programs) -> None:
    """promtool runs every scenario of rules/*.test.yml."""
    tests = sorted((Path(__file__).parent / "rules").glob("*.test.yml"))
    assert len(tests) == len(list(RULES.glob("alerts-*.yml")))
    done = programs.run("promtool", "test", "rules", *tests)
    assert done.returncode == 0, done.stdout


def test_the_blackbox_exporter_accepts_its_configuration(programs: Programs) -> None:
    """It finds no fault in how the site is probed."""
    file = CONFIGURATION / "blackbox.yml"
    done = programs.run("prometheus-blackbox-exporter", f"--config.file={file}", "--config.check")
    assert done.returncode == 0, done.stdout


def test_samples_are_taken_and_judged_every_five_seconds() -> None:
    """A kill of the engine is seen while it lasts."""
    settings = configuration()["global"]
    assert settings["scrape_interval"] == settings["evaluation_interval"] == "5s"


def test_targets_are_services_not_addresses_of_the_host() -> None:
    """In a container, localhost is the container itself."""
    text = (CONFIGURATION / "prometheus.yml").read_text()
    assert not re.search(r"localhost|127\.0\.0\.1|host\.docker", text)


LISTED = {
    "spark.lan": "spark.lan",
    " Spark.LAN, 192.0.2.7": "spark.lan",
    "[fd00::7]": "[fd00::7]",
    "fd00::7": "[fd00::7]",
    "192.0.2.7": "192.0.2.7",
}


@pytest.mark.parametrize("site", [*LISTED, "", "off"])
def test_the_site_is_asked_by_the_first_of_its_names(
    programs: Programs, tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """start.sh lists Caddy and the site for Prometheus, and neither without Caddy."""
    monkeypatch.setenv("PATH", f"{programs.folder}:/usr/bin:/bin")
    monkeypatch.setenv("SITE", site)
    monkeypatch.setenv("TARGETS_DIR", str(tmp_path / "targets"))
    started = Programs(Path("/bin")).run("sh", CONFIGURATION / "start.sh", "--version")
    assert started.returncode == 0, started.stdout
    assert started.stdout.startswith("prometheus, version"), "it did not become Prometheus"
    targets = tmp_path / "targets"
    caddy, listed = (yaml.safe_load((targets / f"{job}.yml").read_text()) for job in ("caddy", "site"))
    if site not in LISTED:
        assert caddy == listed == []
        return
    assert caddy == [{"targets": ["caddy:9180"]}]
    labels = {"__param_hostname": LISTED[site]}
    assert listed == [{"targets": ["https://caddy:443/healthz"], "labels": labels}]


def test_prometheus_reads_the_files_that_start_sh_writes() -> None:
    """The configuration looks where start.sh writes when nothing else is said."""
    script = (CONFIGURATION / "start.sh").read_text()
    (default,) = re.findall(r"TARGETS_DIR:-([^}]+)\}", script)
    jobs = {job["job_name"]: job for job in configuration()["scrape_configs"]}
    for name in ("caddy", "site"):
        assert jobs[name]["file_sd_configs"] == [{"files": [f"{default}/{name}.yml"]}]
