"""From a firing alert to the operator, through a real Alertmanager; what a cause silences; the test alert."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from deploy.alertmanager import trial
from deploy.alertmanager.receivers import Smtp
from tests.prometheus.alertmanagers import alertmanager, written
from tests.prometheus.listeners import mail_server, webhook
from tests.prometheus.programs import Programs

# For tests that wait for the group of an alert: what is waited for is the same, only sooner.
AT_ONCE = ("group_wait: 10s", "group_wait: 1s")


def hastened(configuration: Path) -> Path:
    """The same configuration with a group_wait of a second."""
    text = configuration.read_text()
    assert AT_ONCE[0] in text
    configuration.write_text(text.replace(*AT_ONCE))
    return configuration


@pytest.mark.parametrize(
    ("scheme", "path", "arrives"),
    [("http", "hook?token=x", "/hook?token=x"), ("ntfy+http", "topic", "/topic?template=alertmanager")],
)
async def test_an_alert_reaches_a_webhook_and_ntfy(
    programs: Programs, tmp_path: Path, scheme: str, path: str, arrives: str
) -> None:
    """One POST of Alertmanager's JSON, to the whole address, its query included."""
    async with webhook() as inbox:
        configuration = hastened(written(tmp_path, f"{scheme}://127.0.0.1:{inbox.port}/{path}"))
        async with alertmanager(programs, tmp_path, configuration) as running:
            await running.fire("EngineDown", severity="critical")
            ((target, _, told),) = await inbox.posted()
    assert target == arrives
    assert told["status"] == "firing"
    assert [alert["labels"]["alertname"] for alert in told["alerts"]] == ["EngineDown"]


async def test_an_alert_reaches_slack_with_its_page(programs: Programs, tmp_path: Path) -> None:
    """Title, summary and the runbook's address, in Slack's shape."""
    async with webhook() as inbox:
        configuration = hastened(written(tmp_path, f"slack+http://127.0.0.1:{inbox.port}/hooks/x"))
        async with alertmanager(programs, tmp_path, configuration) as running:
            await running.fire("EngineDown", severity="critical")
            ((_, _, told),) = await inbox.posted()
    (attachment,) = told["attachments"]
    assert attachment["title"] == "EngineDown"
    assert attachment["title_link"] == "https://example.org/EngineDown.md"
    assert "It happens." in attachment["text"]


async def test_an_alert_reaches_a_mailbox_over_tls(programs: Programs, tmp_path: Path) -> None:
    """After STARTTLS and a login with the password of its file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    async with mail_server(context) as inbox:
        smtp = Smtp(f"localhost:{inbox.port}", "box@example.org", "box")
        configuration = hastened(written(tmp_path, "mailto:you@example.org", smtp, "a-password\n"))
        trust = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
        async with alertmanager(programs, tmp_path, configuration, **trust) as running:
            await running.fire("EngineDown", severity="critical")
            (mail,) = await inbox.mailed()
    assert inbox.logins == ["\0box\0a-password"]
    assert "Subject: EngineDown" in mail
    assert "To: you@example.org" in mail
    assert "It happens." in mail


async def test_a_cause_silences_its_consequences(programs: Programs, tmp_path: Path) -> None:
    """An engine that is down is told; that calls fail and streams are late is then no news."""
    async with webhook() as inbox:
        configuration = hastened(written(tmp_path, f"http://127.0.0.1:{inbox.port}/"))
        async with alertmanager(programs, tmp_path, configuration) as running:
            await running.fire("EngineDown", severity="critical")
            await running.fire("ErrorRatio", severity="critical", window="1h")
            await running.fire("TTFTOverTarget", severity="warning", model="m")
            await inbox.posted()
            await running.fire("DiskFull", severity="warning", device="/dev/sda")
            await inbox.posted(2)
    told = [alert["labels"]["alertname"] for _, _, message in inbox.posts for alert in message["alerts"]]
    assert told == ["EngineDown", "DiskFull"]


async def test_a_site_that_is_down_silences_its_targets(programs: Programs, tmp_path: Path) -> None:
    """Caddy and the probe; another target that is down is told."""
    async with webhook() as inbox:
        configuration = hastened(written(tmp_path, f"http://127.0.0.1:{inbox.port}/"))
        async with alertmanager(programs, tmp_path, configuration) as running:
            await running.fire("SiteDown", severity="critical", instance="spark.lan", job="site")
            for job in ("caddy", "site", "node"):
                await running.fire("TargetDown", severity="warning", job=job)
            await inbox.posted(2)
    told = {alert["labels"].get("job") for _, _, message in inbox.posts for alert in message["alerts"]
            if alert["labels"]["alertname"] == "TargetDown"}  # fmt: skip
    assert told == {"node"}


async def test_what_is_critical_is_not_told_as_a_warning_too(programs: Programs, tmp_path: Path) -> None:
    """Of the same disk; another disk's warning is told."""
    async with webhook() as inbox:
        configuration = hastened(written(tmp_path, f"http://127.0.0.1:{inbox.port}/"))
        async with alertmanager(programs, tmp_path, configuration) as running:
            for severity, device in (("critical", "a"), ("warning", "a"), ("warning", "b")):
                await running.fire("DiskFull", severity=severity, device=device)
            await inbox.posted(2)
    told = {
        (alert["labels"]["severity"], alert["labels"]["device"])
        for _, _, message in inbox.posts
        for alert in message["alerts"]
    }
    assert told == {("critical", "a"), ("warning", "b")}


async def test_the_test_alert_is_delivered_each_time_it_is_sent(programs: Programs, tmp_path: Path) -> None:
    """At once, and the second one too: no group holds it back."""
    async with webhook() as inbox:
        configuration = written(tmp_path, f"http://127.0.0.1:{inbox.port}/")
        async with alertmanager(programs, tmp_path, configuration) as running:
            assert await asyncio.to_thread(trial.send, running.execute, running.url) == "delivered"
            ((_, _, told),) = await inbox.posted()
            assert told["alerts"][0]["labels"]["alertname"] == "TestAlert"
            assert await asyncio.to_thread(trial.send, running.execute, running.url) == "delivered"
            assert len(await inbox.posted(2)) == 2


async def test_a_test_alert_that_is_refused_has_failed(programs: Programs, tmp_path: Path) -> None:
    """The receiver answers 403: the operator hears that it failed."""
    async with webhook() as inbox:
        inbox.status = "403 Forbidden"
        configuration = written(tmp_path, f"http://127.0.0.1:{inbox.port}/")
        async with alertmanager(programs, tmp_path, configuration) as running:
            assert await asyncio.to_thread(trial.send, running.execute, running.url) == "failed"


async def test_without_an_alert_url_the_test_alert_goes_nowhere(programs: Programs, tmp_path: Path) -> None:
    """And it says so, instead of waiting for ever."""
    async with alertmanager(programs, tmp_path, written(tmp_path, "")) as running:
        outcome = await asyncio.to_thread(trial.send, running.execute, running.url, wait_seconds=3)
    assert outcome == "nowhere"
