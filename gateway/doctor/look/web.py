"""Asks addresses over HTTP: from here, or from within the gateway's container, which alone reaches some."""

import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from gateway.doctor.finding import Unseen
from gateway.doctor.look import regular
from gateway.doctor.look.inside import PROGRAM
from gateway.doctor.look.programs import Docker
from gateway.errors import reason_of

SECONDS = 5.0
MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Answer:
    """A status and what came with it. `ahead_seconds`: this clock against the answer's Date, if it has."""

    status: int
    text: str
    ahead_seconds: float | None = None


Fetch = Callable[[str], Answer | Unseen]


def direct(
    headers: Mapping[str, str] | None = None,
    ca_file: str = "",
    seconds: float = SECONDS,
    *,
    by_proxy: bool = False,
) -> Fetch:
    """Asks from here, past any proxy of the environment unless that is the way out."""

    def fetch(url: str) -> Answer | Unseen:
        if not all(map(_may_be_sent, (headers or {}).values())):  # httpx would quote it in its error
            return Unseen(f"{url} cannot be asked: the key for it has characters that no header may have")
        try:
            asking = httpx.Client(
                headers=headers, timeout=seconds, trust_env=by_proxy, verify=_trust(url, ca_file)
            )
            with asking, asking.stream("GET", url) as answer:
                return Answer(answer.status_code, _text(answer, seconds), _ahead(answer))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Unseen(f"{url} does not answer ({reason_of(error)})")

    return fetch


def _may_be_sent(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()


def _text(answer: httpx.Response, seconds: float) -> str:
    """What was sent, up to MOST_BYTES. Raises httpx.ReadTimeout where it comes by drops."""
    body, end = bytearray(), time.monotonic() + 2 * seconds
    for chunk in answer.iter_bytes():
        body += chunk
        if len(body) >= MOST_BYTES:
            raise httpx.ReadError(f"it sends more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > end:
            raise httpx.ReadTimeout(f"it has not ended after {2 * seconds:g} s")
    return body.decode(errors="replace")


def through(docker: Docker) -> Fetch:
    """Asks from within the gateway's container."""

    def fetch(url: str) -> Answer | Unseen:
        done = docker("compose", "exec", "-T", "gateway", "python3", "-c", PROGRAM, url)
        if done.code:
            return Unseen(
                f"{url} is asked from the gateway's container, and that fails ({done.last_line})", "make up"
            )
        try:
            [(status, text)] = json.loads(done.out)
        except (ValueError, TypeError, RecursionError):
            return Unseen(f"{url} is asked from the gateway's container, and that answers something else")
        return Answer(status, text) if status else Unseen(f"{url} does not answer ({text})")

    return fetch


def _trust(url: str, ca_file: str) -> ssl.SSLContext:
    # Loading the system's roots takes longer than a call without TLS.
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file and (why := regular.trouble(Path(ca_file))):
        raise ValueError(why)
    return ssl.create_default_context(cafile=ca_file or None)


def _ahead(answer: httpx.Response) -> float | None:
    try:
        theirs = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError, TypeError):
        return None
    return (datetime.now(UTC) - theirs).total_seconds() if theirs.tzinfo else None
