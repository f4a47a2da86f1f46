"""The table of checks: each is named once, says something in any case, and stands in docs/doctor.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.doctor.before import docker, gpu
from gateway.doctor.checks import CHECKS, diagnose
from gateway.doctor.evidence import Evidence
from gateway.doctor.finding import SEVERITIES, Finding
from gateway.doctor.machine import spoken
from gateway.doctor.running.messages import MESSAGES
from tests.doctor.evidence import configuration, machine

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
BOTH = frozenset({"before", "running"})
NOTHING = machine(
    docker_trouble="docker is not installed",
    engine=(),
    compose=(),
    gpus=(),
    gpu_in_docker=False,
    data_root=None,
)


def found(evidence: Evidence) -> dict[str, list[Finding]]:
    """The findings of each check."""
    told: dict[str, list[Finding]] = {}
    for finding in diagnose(evidence, BOTH):  # type: ignore[arg-type]
        told.setdefault(finding.check, []).append(finding)
    return told


def test_without_evidence_every_check_says_why_it_looked_at_nothing() -> None:
    """Nothing is left out in silence."""
    told = found(Evidence())
    assert list(told) == [check.name for check in CHECKS]
    for [finding] in told.values():
        assert finding.severity == "skipped"
        assert finding.evidence.startswith("not looked at, because ")


def test_names_are_given_once() -> None:
    """Scripts choose by them."""
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize(("used", "severity"), [(True, "error"), (False, "hint")])
def test_what_is_not_used_is_no_error(used: bool, severity: str) -> None:
    """Docker and a GPU lack only where something is to run on them."""
    told = found(Evidence(machine=NOTHING, needs_docker=used, needs_gpu=used))
    assert [told[name][0].severity for name in ("docker", "driver")] == [severity] * 2


def test_keep_alive_of_a_box_is_not_guessed(tmp_path: Path) -> None:
    """vLLM's default is that of an engine that somebody else started."""
    text = '[[models]]\nid = "q"\nengines = ["http://vllm:8000"]\n[engine]\nkeep_alive_seconds = 60\n'
    known = configuration(tmp_path, text)
    for boxed, severity in ((True, "skipped"), (False, "hint")):
        [finding] = found(Evidence(needs_docker=boxed, configuration=known))["keep-alive"]
        assert finding.severity == severity


def test_the_worst_comes_first() -> None:
    """In the order of SEVERITIES."""
    told = diagnose(Evidence(machine=NOTHING, needs_docker=True), frozenset({"before"}))
    order = [SEVERITIES.index(finding.severity) for finding in told]
    assert order == sorted(order)
    assert len(set(order)) > 1


def test_stages() -> None:
    """Half of the checks at a time."""
    before = {finding.check for finding in diagnose(Evidence(), frozenset({"before"}))}
    running = {finding.check for finding in diagnose(Evidence(), frozenset({"running"}))}
    assert before | running == {check.name for check in CHECKS}
    assert not before & running


def test_what_is_asked_for_is_what_operators_are_told() -> None:
    """Versions in docs/operate.md are those that are compared with."""
    page = " ".join((PAGE.with_name("operate.md")).read_text().split())
    engine, compose = spoken(docker.OLDEST_ENGINE), spoken(docker.OLDEST_COMPOSE)
    wanted = f"Docker Engine {engine}, Compose {compose}, NVIDIA's driver {spoken(gpu.OLDEST_DRIVER)}"
    assert wanted in page


def rows() -> Iterator[tuple[str, str]]:
    """Name and stage of each check in the tables of the page."""
    stage = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            stage = "before" if "Before" in line else "running" if "runs" in line else ""
        if stage and (match := re.match(r"\| `([a-z-]+)` \|(.+)\|(.+)\|(.+)\|$", line)):
            assert all(cell.strip() for cell in match.groups()), line
            yield match[1], stage


def test_every_check_is_documented() -> None:
    """With what it looks at, its evidence and its mend, in the stage that it belongs to."""
    assert sorted(rows()) == sorted((check.name, check.stage) for check in CHECKS)


def test_every_message_is_documented() -> None:
    """What the log's check knows can be read before it happens."""
    page = " ".join(PAGE.read_text().split())
    assert [message.title for message in MESSAGES if message.title not in page] == []
