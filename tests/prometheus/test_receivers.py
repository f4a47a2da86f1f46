"""ALERT_URL: what each kind becomes, what is refused, and that no address stands in the configuration."""

from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from deploy.alertmanager.configuration import TEMPLATE, address, render
from deploy.alertmanager.receivers import BadAlertUrl, Smtp, receiver
from tests.prometheus.alertmanagers import written
from tests.prometheus.programs import Programs
from tests.prometheus.test_promises import NAMES

SMTP = Smtp("smtp.example.org", "box@example.org", "box")
KINDS = {
    "": ("none", ""),
    "  ": ("none", ""),
    "https://ntfy.sh/a-topic": ("ntfy", "https://ntfy.sh/a-topic?template=alertmanager"),
    "https://ntfy.sh/a-topic/?priority=4": (
        "ntfy",
        "https://ntfy.sh/a-topic?priority=4&template=alertmanager",
    ),
    "https://ntfy.sh/a-topic?tpl=mine": ("ntfy", "https://ntfy.sh/a-topic?tpl=mine"),
    "http://ntfy.lan:8080/t": ("ntfy", "http://ntfy.lan:8080/t?template=alertmanager"),
    "ntfy+https://push.example.org/t": ("ntfy", "https://push.example.org/t?template=alertmanager"),
    "https://:tk_x@ntfy.sh/t": ("ntfy", "https://:tk_x@ntfy.sh/t?template=alertmanager"),
    "https://hooks.slack.com/services/T/B/X": ("slack", "https://hooks.slack.com/services/T/B/X"),
    "slack+https://chat.example.org/hooks/x": ("slack", "https://chat.example.org/hooks/x"),
    "https://example.org/hook?token=x": ("webhook", "https://example.org/hook?token=x"),
    "HTTP://Example.org/hook": ("webhook", "http://Example.org/hook"),
    "https://notntfy.sh/a/b": ("webhook", "https://notntfy.sh/a/b"),
    "mailto:you@example.org": ("email", ""),
    "mailto:you@example.org,me%2Bbox@example.org": ("email", ""),
}
REFUSED = [
    "example.org/hook",
    "ftp://example.org/x",
    "https://",
    "https:///hook",
    "https://example.org:99999/",
    "https://example.org:x/",
    "https://example.org/a b",
    "https://example.org/a\nb",
    "https://ntfy.sh/",
    "https://ntfy.sh",
    "https://ntfy.sh/a/b",
    "mailto:",
    "mailto:you",
    "mailto:,@",
    "telegram+https://example.org/",
    "https://[::1/",
]


@pytest.mark.parametrize(("alert_url", "meant"), KINDS.items())
def test_an_alert_url_says_its_kind_and_its_address(alert_url: str, meant: tuple[str, str]) -> None:
    """By its host or scheme; ntfy is asked to make a text of the JSON, unless it was told how."""
    assert (receiver(alert_url).kind, address(alert_url)) == meant


@pytest.mark.parametrize("alert_url", REFUSED)
def test_what_cannot_be_sent_to_is_refused(alert_url: str) -> None:
    """In one line that says what can be written instead."""
    with pytest.raises(BadAlertUrl) as refused:
        render(alert_url)
    assert "https://ntfy.sh/TOPIC" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("start", ["ftp://u:", "https://ntfy.sh/a/", "https://example.org:", "mailto:", ""])
def test_a_refusal_does_not_repeat_the_url(start: str) -> None:
    """It may be as good as a password, and what is printed is often kept."""
    with pytest.raises(BadAlertUrl) as refused:
        render(f"{start}a-password")
    assert "a-password" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "smtp", [None, Smtp("", "box@example.org"), Smtp("smtp", "box"), Smtp("smtp:x", "box@example.org")]
)
def test_mail_without_a_server_to_send_it_is_refused(smtp: Smtp | None) -> None:
    """The message names the setting."""
    with pytest.raises(BadAlertUrl, match="SMTP_HOST"):
        render("mailto:you@example.org", smtp)


NO_ADDRESSES = [
    "a b@example.org", "a@example.org\n", "a\x7f@example.org", "a\ufffe@example.org", "a\udc80@example.org",
    "a\x85@example.org", "{{ 1 }}@example.org", "a@{{.}}", "a@@example.org", '"a"@example.org', "a..b@x",
    ".a@x", "ä@example.org", "a@exämple.org", "a@", "@x", f"{'a' * 65}@x", "a@x..y", "a<b@x>",
]  # fmt: skip


@pytest.mark.parametrize("bad", NO_ADDRESSES)
def test_what_is_no_mail_address_is_refused(bad: str) -> None:
    """As a sender and as a recipient: it would give a configuration that Alertmanager does not start with."""
    with pytest.raises(BadAlertUrl, match="SMTP_FROM"):
        render("mailto:you@example.org", Smtp("smtp.example.org", bad))
    with pytest.raises(BadAlertUrl, match="mailto:you@example"):
        render(f"mailto:{quote(bad, errors='surrogatepass')}", SMTP)


@pytest.mark.parametrize(
    "host",
    [
        "smtp:0", "smtp:65536", "smtp:٢٥", "smtp:²", "smtp:587:1", "smtp: 25", "smtp:", ":25", "smtp\n",
        "s p", "smtp:-1", "{{.}}:25", "smtp\x7f:25", "sm\udc80tp", "::1:25", "user@smtp:25",
    ],
)  # fmt: skip
def test_a_mail_server_is_a_host_and_a_port(host: str) -> None:
    """In ASCII; the message names the setting and shows how it is written."""
    with pytest.raises(BadAlertUrl, match="SMTP_HOST is no host:port: write it as"):
        render("mailto:you@example.org", Smtp(host, "box@example.org"))


@pytest.mark.parametrize(
    "user", ["a\nb", "a\x7f", "\ufffe", "\udc80", "{{.}}", " a", "a\u2028", "\U0001f600"]
)
def test_a_user_that_yaml_cannot_hold_is_refused(user: str) -> None:
    """Or that is a template, or has space at an end."""
    with pytest.raises(BadAlertUrl, match="SMTP_USER is no user's name"):
        render("mailto:you@example.org", Smtp("smtp", "box@example.org", user))


@pytest.mark.parametrize(
    "smtp",
    [
        Smtp("smtp.example.org:1", "b.o+x@example.org", "bücher \\ 'box' \"q\" #: \uffee"),
        Smtp("[fd00::5]:65535", "b'ox@localhost", "DOMAIN\\user"),
        Smtp("relay_1.lan", f"{'a' * 64}@xn--bcher-kva.example", "%s"),
    ],
)
def test_amtool_accepts_odd_mail_settings(programs: Programs, tmp_path: Path, smtp: Smtp) -> None:
    """They are unusual and right, and arrive as they were written."""
    file = written(tmp_path, "mailto:a/b=c@example.org,d%26e@x", smtp, "password")
    done = programs.run("amtool", "check-config", file)
    assert done.returncode == 0, done.stdout
    (settings,) = yaml.safe_load(file.read_text())["receivers"][0]["email_configs"]
    assert (settings["from"], settings["auth_username"]) == (smtp.sender, smtp.user)
    assert file.read_text().isascii()


@pytest.mark.parametrize("alert_url", KINDS)
def test_amtool_accepts_what_is_made_of_each_kind(programs: Programs, tmp_path: Path, alert_url: str) -> None:
    """And it holds no address: that is in a file of its own."""
    file = written(tmp_path, alert_url, SMTP, "password")
    done = programs.run("amtool", "check-config", file)
    assert done.returncode == 0, done.stdout
    assert "1 receivers" in done.stdout
    assert "password\n" not in file.read_text()
    if address(alert_url):
        assert address(alert_url) not in file.read_text()


@pytest.mark.parametrize(
    ("smtp", "expected"),
    [
        (Smtp("smtp.example.org", "b@example.org"), ("smtp.example.org:587", True, None)),
        (Smtp("smtp.example.org:465", "b@example.org", "u"), ("smtp.example.org:465", True, "u")),
        (Smtp("relay.lan:25", "b@example.org"), ("relay.lan:25", False, None)),
        (Smtp("relay.lan:25", "b@example.org", "u"), ("relay.lan:25", True, "u")),
    ],
)
def test_a_password_is_never_sent_in_clear(smtp: Smtp, expected: tuple[str, bool, str | None]) -> None:
    """Only a relay on port 25 that asks for no login may be without TLS."""
    (settings,) = yaml.safe_load(render("mailto:you@example.org", smtp))["receivers"][0]["email_configs"]
    assert (settings["smarthost"], settings["require_tls"], settings.get("auth_username")) == expected
    assert ("auth_password_file" in settings) == bool(smtp.user)


def test_a_mailto_may_name_several() -> None:
    """Separated by commas, as in a mail program."""
    text = render("mailto:you@example.org,me%2Bbox@example.org", SMTP)
    (settings,) = yaml.safe_load(text)["receivers"][0]["email_configs"]
    assert settings["to"] == "you@example.org, me+box@example.org"


def test_the_template_alone_is_valid_and_sends_nothing(programs: Programs) -> None:
    """So that it can be read, and checked, as it is committed."""
    done = programs.run("amtool", "check-config", TEMPLATE)
    assert done.returncode == 0, done.stdout
    assert yaml.safe_load(TEMPLATE.read_text())["receivers"] == [{"name": "operator"}]


def test_what_silences_and_what_is_silenced_are_alerts() -> None:
    """A name that no rule has would silence nothing, unnoticed."""
    for rule in yaml.safe_load(TEMPLATE.read_text())["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            if matcher.startswith("alertname"):
                assert set(matcher.split('"')[1].split("|")) <= set(NAMES)
