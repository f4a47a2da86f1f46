"""What holds for each alert: it says what to do, has its page, is tried both ways, and reads what exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.places import CHECKOUT
from gateway.metrics import LATENCY_SECONDS
from tests.prometheus import exposed
from tests.prometheus.programs import RULES, Programs, serving
from tests.running import free_port, http_client

RUNBOOKS = CHECKOUT / "docs" / "runbooks"
ADDRESS = "https://github.com/vllm-gateway/vllm-gateway/blob/main/docs/runbooks/"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

Rule = dict[str, Any]


def rules() -> list[Rule]:
    """All rules, recorded ones and alerts."""
    groups = [yaml.safe_load(file.read_text())["groups"] for file in sorted(RULES.glob("*.yml"))]
    return [rule for file in groups for group in file for rule in group["rules"]]


ALERTS = [rule for rule in rules() if "alert" in rule]
NAMES = sorted({rule["alert"] for rule in ALERTS})


def expectations() -> Iterator[tuple[str, list[str]]]:
    """Each expression that promtool evaluates, and the series that it must find."""
    for file in sorted((Path(__file__).parent / "rules").glob("*.test.yml")):
        for test in yaml.safe_load(file.read_text())["tests"]:
            for expected in test["promql_expr_test"]:
                yield expected["expr"], [sample["labels"] for sample in expected["exp_samples"]]


def labels(series: str) -> dict[str, str]:
    """The labels of a series as written in PromQL."""
    return dict(re.findall(r'(\w+)="([^"]*)"', series))


def test_there_is_an_alert_for_each_thing_that_is_promised() -> None:
    """The README and the pages speak of these."""
    assert set(NAMES) == {
        *("GatewayDown", "SiteDown", "CertificateNearItsEnd", "KeyStoreUnreadable"),
        "UsageNotBooked",
        *("EngineDown", "EngineHung", "EngineQueueGrowing", "KVCacheFull"),
        *("ErrorRatio", "TTFTOverTarget", "KeyFlooding"),
        *("MemoryShort", "DiskFull", "TargetDown"),
    }


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_an_alert_is_tried_both_ways(rule: Rule) -> None:
    """A scenario in which it fires with these labels, and one in which it keeps wholly silent."""
    own = {"alertname": rule["alert"], **rule["labels"], "alertstate": "firing"}
    found = [labels(series) for _, expected in expectations() for series in expected]
    assert any(own.items() <= series.items() for series in found), f"no scenario expects {own}"
    whole = f'ALERTS{{alertname="{rule["alert"]}"}}'
    silent = [expr for expr, expected in expectations() if expr == whole and not expected]
    assert silent, f"no scenario expects silence of {rule['alert']}"


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_an_alert_says_what_it_is_and_what_to_do(rule: Rule) -> None:
    """A line for the phone, a sentence with the next step, and the address of its page."""
    said = rule["annotations"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert said["runbook_url"] == f"{ADDRESS}{rule['alert']}.md"
    assert 10 < len(said["summary"]) < 120
    assert len(said["description"]) > 60
    assert said["summary"].endswith(".")


def test_each_alert_has_its_runbook_and_each_runbook_its_alert() -> None:
    """No link leads nowhere, and no page is about what is never said; the index lists all of them."""
    pages = sorted(page.stem for page in RUNBOOKS.glob("*.md") if page.stem != "README")
    assert pages == NAMES
    index = (RUNBOOKS / "README.md").read_text()
    assert sorted(re.findall(r"^\| \[(\w+)\]\(\1\.md\)", index, re.MULTILINE)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_says_meaning_impact_diagnosis_and_mitigation(name: str) -> None:
    """In this order; what it links to exists; the commands can be pasted into a shell."""
    page = (RUNBOOKS / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == SECTIONS
    for link in re.findall(r"\]\(([^)#]+)\)", page):
        assert (RUNBOOKS / link).is_file(), link
    commands = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert commands
    for block in commands:
        assert shlex.split(block, comments=True)


def services_of(file: str) -> dict[str, Any]:
    """The services of one of the stack's files, as written."""
    services: dict[str, Any] = yaml.safe_load((CHECKOUT / file).read_text())["services"]
    return services


def test_runbooks_name_services_of_the_stack() -> None:
    """What follows `docker compose exec`, `logs`, `restart` … is one of them."""
    services = set(services_of("compose.yaml")) | set(services_of("deploy/monitoring.yaml"))
    called = re.compile(
        r"docker compose (?:exec|logs|restart|stop|top|ps|up)(?: -[\w-]+(?: \d+\w?)?)*((?: [a-z][a-z-]*)?)"
    )
    for page in sorted(RUNBOOKS.glob("*.md")):
        named = {name.strip() for name in called.findall(page.read_text())} - {""}
        assert named <= services, f"{page.name}: {named - services}"


def test_recorded_series_are_named_level_metric_operation() -> None:
    """As Prometheus' own practices have it, so that a panel's author knows what is in one."""
    for rule in rules():
        if "record" in rule:
            assert re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z0-9_]+", rule["record"]), rule["record"]


async def test_rules_read_what_exists(programs: Programs, tmp_path: Path) -> None:
    """Each metric in a rule is shown by the gateway, vLLM or an exporter as the stack starts it."""
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    known = recorded | exposed.OF_PROMETHEUS | exposed.OF_PROBES
    known |= exposed.of_gateway() | exposed.of_vllm() | exposed.of_gpus() | await of_node(programs, tmp_path)
    assert exposed.missing((rule["expr"] for rule in rules()), known) == set()


async def of_node(programs: Programs, folder: Path) -> set[str]:
    """What a real node exporter shows with the arguments that the stack gives it."""
    port = free_port()
    service = services_of("deploy/monitoring.yaml")["node-exporter"]
    arguments = [argument for argument in service["command"] if not argument.startswith("--path.rootfs")]
    # In a container the root is an overlay, which it leaves out by itself: nothing would be left to show.
    arguments += [f"--web.listen-address=127.0.0.1:{port}", "--collector.filesystem.fs-types-exclude=^proc$"]
    command = [programs.path("prometheus-node-exporter"), *arguments]
    url = f"http://127.0.0.1:{port}/metrics"
    async with serving(command, url, folder / "node.log"), http_client() as client:
        return exposed.of_text((await client.get(url)).text)


def test_a_promql_expression_is_read_as_prometheus_reads_it() -> None:
    """Labels, functions and durations are no metrics; names with colons are."""
    expression = (
        'sum by (le, a) (rate(x:y_total{b="c{"}[5m] offset 5m)) > on (z) group_left () max(w) and -1e9'
    )
    assert exposed.in_promql(expression) == {"x:y_total", "w"}


def test_the_target_for_the_first_token_is_a_bound_of_its_histogram() -> None:
    """With another the share of late streams would be counted from nothing."""
    recorded = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
    target: str = recorded["gateway:time_to_first_token_target:seconds"]
    assert float(target.removeprefix("vector(").removesuffix(")")) in LATENCY_SECONDS
