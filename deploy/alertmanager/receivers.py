"""What an ALERT_URL means: the kind of receiver, its address, and its part of the configuration.

The address is as good as a password, so it stands in a file of its own and the configuration names that file.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

Kind = Literal["none", "ntfy", "slack", "webhook", "email"]

# Go templates of Alertmanager: what has happened, what to do next, where to read on.
_TITLE = '{{ if eq .Status "resolved" }}Over: {{ end }}{{ .CommonLabels.alertname }}'
_TEXT = (
    "{{ range .Alerts }}{{ .Annotations.summary }}\n"
    '{{ if eq .Status "firing" }}{{ .Annotations.description }}\n{{ .Annotations.runbook_url }}\n{{ end }}'
    "\n{{ end }}"
)
_SLACK_COLOR = '{{ if eq .Status "resolved" }}good{{ else }}danger{{ end }}'

# What mail servers hand on everywhere. No braces (Alertmanager makes templates of addresses), no quotes, and
# no letters beyond ASCII, which are for servers with SMTPUTF8 alone.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`|~-]+"
_ADDRESS = re.compile(rf"(?=[^@]{{1,64}}@){_ATOM}(\.{_ATOM})*@[A-Za-z0-9-]{{1,63}}(\.[A-Za-z0-9-]{{1,63}})*")
_SMTP_HOST = re.compile(r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:(?P<port>[0-9]{1,5}))?")

_MEND = (
    "use https://ntfy.sh/TOPIC, https://hooks.slack.com/services/…, the URL of a webhook, "
    "mailto:you@example.org, or leave it empty"
)


class BadAlertUrl(Exception):
    """ALERT_URL, or the settings for e-mail, cannot be used; the message names the mend and never the URL."""


@dataclass(frozen=True)
class Smtp:
    """How e-mail is sent. `host` may end in a port (587 otherwise); without a `user` nobody logs in."""

    host: str
    sender: str
    user: str = ""


@dataclass(frozen=True)
class Receiver:
    """Where alerts go. `address` is the secret that the file `alert-url` holds; empty where there is none."""

    kind: Kind
    address: str = ""
    recipients: tuple[str, ...] = ()


def receiver(alert_url: str) -> Receiver:
    """The receiver that an ALERT_URL means; empty means none. Raises BadAlertUrl.

    A scheme may say the kind where the host does not: `ntfy+https://` for a server of one's own,
    `slack+https://` for what takes Slack's messages (Mattermost; Discord with `/slack` at the end).
    """
    url = alert_url.strip()
    if not url:
        return Receiver("none")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise BadAlertUrl(f"ALERT_URL holds white space: {_MEND}.")
    try:
        if url.lower().startswith("mailto:"):
            return Receiver("email", recipients=_recipients(url))
        return _over_http(url)
    except ValueError:
        raise BadAlertUrl(f"ALERT_URL is no URL that alerts can be sent to: {_MEND}.") from None


def block(target: Receiver, smtp: Smtp | None, secrets: str) -> str:
    """The `receivers:` part of the configuration, in YAML. Raises BadAlertUrl if e-mail lacks settings."""
    return "receivers:\n  - name: operator\n" + _BLOCKS[target.kind](target, smtp, secrets)


def _recipients(url: str) -> tuple[str, ...]:
    addresses = tuple(filter(None, unquote(urlsplit(url).path).split(",")))
    if not addresses or not all(map(_is_address, addresses)):
        raise ValueError(url)
    return addresses


def _is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def _over_http(url: str) -> Receiver:
    said, _, scheme = urlsplit(url).scheme.rpartition("+")
    parts = urlsplit(url)._replace(scheme=scheme)
    host = parts.hostname or ""
    # Reading the port is what checks it.
    if scheme not in ("http", "https") or said not in ("", "ntfy", "slack") or not host or parts.port == 0:
        raise ValueError(url)
    if said == "ntfy" or (not said and (host == "ntfy.sh" or host.startswith("ntfy."))):
        return Receiver("ntfy", _readable_by_ntfy(urlunsplit(parts)))
    slack = said == "slack" or host == "hooks.slack.com"
    return Receiver("slack" if slack else "webhook", urlunsplit(parts))


def _readable_by_ntfy(url: str) -> str:
    """The topic's URL, asking ntfy to make a text of Alertmanager's JSON (docs.ntfy.sh, "Templates")."""
    parts = urlsplit(url)
    topic = parts.path.strip("/")
    if not topic or "/" in topic:
        raise BadAlertUrl("ALERT_URL names ntfy without a topic: write https://ntfy.sh/TOPIC.")
    if {"template", "tpl"} & parse_qs(parts.query).keys():
        return url
    query = f"{parts.query}&template=alertmanager" if parts.query else "template=alertmanager"
    return urlunsplit(parts._replace(path=f"/{topic}", query=query))


def _entries(section: str, entries: Mapping[str, str | bool]) -> str:
    """One receiver's settings; a JSON string is a YAML string, as far as it is ASCII or escaped."""
    first, *rest = [f"{name}: {json.dumps(value)}" for name, value in entries.items()]
    return "\n".join([f"    {section}:", f"      - {first}", *(f"        {line}" for line in rest)]) + "\n"


def _none(_target: Receiver, _smtp: Smtp | None, _secrets: str) -> str:
    return ""


def _webhook(_target: Receiver, _smtp: Smtp | None, secrets: str) -> str:
    return _entries("webhook_configs", {"url_file": f"{secrets}/alert-url", "send_resolved": True})


def _slack(_target: Receiver, _smtp: Smtp | None, secrets: str) -> str:
    settings: dict[str, str | bool] = {
        "api_url_file": f"{secrets}/alert-url",
        "send_resolved": True,
        "color": _SLACK_COLOR,
        "title": _TITLE,
        # The default leads to Alertmanager, which nobody reaches from outside.
        "title_link": "{{ .CommonAnnotations.runbook_url }}",
        "fallback": _TITLE,
        "text": _TEXT,
    }
    return _entries("slack_configs", settings)


def _email(target: Receiver, smtp: Smtp | None, secrets: str) -> str:
    if smtp is None or not smtp.host or not _is_address(smtp.sender):
        raise BadAlertUrl("Alerts by e-mail need SMTP_HOST=host:port and SMTP_FROM=sender@example.org.")
    if not _is_user(smtp.user):
        raise BadAlertUrl("SMTP_USER is no user's name: write it as the mail server's operator gave it.")
    host, port = _server(smtp.host)
    settings: dict[str, str | bool] = {
        "to": ", ".join(target.recipients),
        "from": smtp.sender,
        "smarthost": f"{host}:{port}",
        # A relay in the own network often has no TLS; with a password there is no way round it.
        "require_tls": port != "25" or bool(smtp.user),
        "send_resolved": True,
        "html": "",
        "text": _TEXT,
    }
    if smtp.user:
        settings |= {"auth_username": smtp.user, "auth_password_file": f"{secrets}/smtp-password"}
    return _entries("email_configs", settings) + f"        headers: {{Subject: {json.dumps(_TITLE)}}}\n"


def _is_user(text: str) -> bool:
    """Empty is one too. JSON writes what lies over U+FFFF in two escapes, which YAML does not join."""
    return (
        text.isprintable() and text == text.strip() and "{{" not in text and max(text, default="") <= "\uffff"
    )


def _server(smtp_host: str) -> tuple[str, str]:
    found = _SMTP_HOST.fullmatch(smtp_host)
    port = int(found["port"] or "587") if found else 0
    if found is None or not 1 <= port <= 65535:
        raise BadAlertUrl("SMTP_HOST is no host:port: write it as smtp.example.org:587.")
    return found["host"], str(port)


_BLOCKS: dict[Kind, Callable[[Receiver, Smtp | None, str], str]] = {
    "none": _none,
    "ntfy": _webhook,
    "slack": _slack,
    "webhook": _webhook,
    "email": _email,
}
