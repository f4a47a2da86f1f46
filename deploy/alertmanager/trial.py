"""A test alert through Alertmanager, and whether it was delivered: what `make alert-test` does."""

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

Outcome = Literal["delivered", "failed", "nowhere"]
Execute = Callable[[Sequence[str]], str]

# In the container, where it listens on the address of the ops network alone.
URL = "http://alertmanager:9093"
WAIT_SECONDS = 30.0
_LIFE = timedelta(minutes=1)
_REQUESTS = re.compile(r"^alertmanager_notification_requests(_failed)?_total\{[^}]*\} (\S+)$", re.MULTILINE)


def send(execute: Execute, url: str = URL, wait_seconds: float = WAIT_SECONDS) -> Outcome:
    """Send a test alert and wait until it has left: "nowhere" if nothing was tried, as without an ALERT_URL.

    `execute` runs a command in Alertmanager's container and answers what it prints; what it raises passes.
    """
    before = _requests(execute, url)
    execute(command(url))
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline:
        tried, failed = (now - then for now, then in zip(_requests(execute, url), before, strict=True))
        if tried:
            return "failed" if failed else "delivered"
        time.sleep(0.5)
    return "nowhere"


def command(url: str = URL) -> list[str]:
    """The arguments of amtool that make a test alert; it is over after a minute, which is told as well."""
    now = datetime.now(UTC)
    return [
        "amtool",
        f"--alertmanager.url={url}",
        "alert",
        "add",
        "alertname=TestAlert",
        "severity=info",
        f"sent={now.isoformat()}",  # makes each an alert of its own
        "--annotation=summary=This is a test: alerts of this vLLM Gateway reach you.",
        "--annotation=description=Nothing is wrong. A second message within minutes says that it is over.",
        f"--end={now + _LIFE:%Y-%m-%dT%H:%M:%SZ}",
    ]


def _requests(execute: Execute, url: str) -> tuple[float, float]:
    """How many notifications were tried since Alertmanager started, and how many of those failed."""
    tried = failed = 0.0
    for failure, count in _REQUESTS.findall(execute(["wget", "-qO-", f"{url}/metrics"])):
        if failure:
            failed += float(count)
        else:
            tried += float(count)
    return tried, failed
