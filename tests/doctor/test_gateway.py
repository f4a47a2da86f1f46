"""What the gateway's own counters and answers tell."""

from pathlib import Path

import pytest

from gateway.doctor.evidence import Ready, Watched
from gateway.doctor.finding import NotLookedError, Unseen
from gateway.doctor.running import gateway as judges
from gateway.doctor.running import thinking
from tests.doctor.evidence import configuration, only, scrape, severities

OPS = "http://127.0.0.1:8081"


def test_ready() -> None:
    """Ready, not ready and why, not there."""
    assert severities(judges.ready(Ready(OPS, 200), expected=False)) == ["ok"]
    finding = only(judges.ready(Ready(OPS, 503, ("http://e: connection refused",)), expected=False))
    assert (finding.severity, "http://e: connection refused" in finding.title) == ("error", True)
    assert severities(judges.ready(Unseen("connection refused"), expected=True)) == ["error"]
    with pytest.raises(NotLookedError):
        list(judges.ready(Unseen("connection refused"), expected=False))


@pytest.mark.parametrize(("value", "severity"), [(1, "ok"), (0, "error")])
def test_key_store(value: int, severity: str) -> None:
    """By its own gauge."""
    assert severities(judges.key_store(scrape({"gateway_key_store_up": value}))) == [severity]
    with pytest.raises(NotLookedError):
        list(judges.key_store(scrape({"something_else": value})))


@pytest.mark.parametrize(
    ("failed", "calls", "severity"), [(0, 100, "ok"), (9, 10, "ok"), (2, 98, "warning"), (10, 90, "error")]
)
def test_errors(failed: int, calls: int, severity: str) -> None:
    """One in a hundred is much, one in twenty too much; of few calls nothing is said."""
    series = 'gateway_requests_total{{model="q",reason="{}",route="/v1/chat/completions",status_class="{}"}}'
    counted = scrape({series.format("ok", "2xx"): calls, series.format("engine_error", "5xx"): failed})
    finding = only(judges.errors(counted))
    assert finding.severity == severity
    assert ("docs/errors.md" in finding.mend) == (severity != "ok")


@pytest.mark.parametrize(
    ("reason", "status_class", "severity"),
    [
        ("invalid_request", "4xx", "ok"),
        ("client_closed", "4xx", "ok"),
        ("client_closed", "2xx", "ok"),
        ("engine_error", "2xx", "error"),
    ],
)
def test_whose_fault(reason: str, status_class: str, severity: str) -> None:
    """A 400 is the caller's, and so is leaving; a stream that broke is not."""
    series = f'gateway_requests_total{{model="q",reason="{reason}",status_class="{status_class}"}}'
    assert severities(judges.errors(scrape({series: 500}))) == [severity]


@pytest.mark.parametrize(("refused", "severity"), [(5, "ok"), (60, "warning")])
def test_limits(refused: int, severity: str) -> None:
    """A key of which every second call is refused has the wrong limit, or the wrong client."""
    counted = scrape(
        {
            'gateway_key_requests_total{key="abc",status_class="2xx"}': 60,
            'gateway_key_requests_total{key="abc",status_class="4xx"}': refused,
            'gateway_limited_total{key="abc",limit="max_parallel"}': refused,
        }
    )
    finding = only(judges.refusals(counted))
    assert finding.severity == severity
    assert ("gateway keys update abc --max-parallel" in finding.mend) == (severity == "warning")


def test_alerts() -> None:
    """Each that fires leads to its runbook."""
    firing = only(judges.alerts(Watched("http://p", ("EngineHung",), None, None, None)))
    assert (firing.severity, firing.mend) == ("error", "docs/runbooks/EngineHung.md")
    assert severities(judges.alerts(Watched("http://p", (), None, None, None))) == ["ok"]


SILENT = """[[models]]
id = "q"
engines = ["http://e:1"]
[models.defaults]
chat_template_kwargs = { enable_thinking = false }
"""
FREE = '[[models]]\nid = "q"\nengines = ["http://e:1"]\n'


@pytest.mark.parametrize(
    ("text", "thought", "severity"), [(SILENT, 8000, "warning"), (SILENT, 100, "ok"), (FREE, 8000, "ok")]
)
def test_thinking(tmp_path: Path, text: str, thought: int, severity: str) -> None:
    """Much of it, although the defaults switch it off."""
    counted = scrape(
        {
            'gateway_tokens_total{key="abc",kind="completion",model="q"}': 10_000,
            'gateway_tokens_total{key="abc",kind="reasoning",model="q"}': thought,
        }
    )
    finding = only(thinking.thinking(counted, configuration(tmp_path, text)))
    assert finding.severity == severity
    assert ("[models.force]" in finding.mend and "key abc" in finding.evidence) == (severity == "warning")
