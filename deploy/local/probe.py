"""Asks addresses whether they answer, without making anybody wait for long."""

import http.client
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True)
class Answer:
    """A status and a body; status 0 and the reason where nobody answered."""

    status: int
    body: bytes


def reachable(url: str) -> bool:
    """Whether an https address in the world answers 200; proxies and certificates as the environment says."""
    if not url.startswith("https://"):
        return False
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310  # https alone, see above
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            return bool(response.status == 200)
    except (OSError, ValueError, http.client.HTTPException):
        # URLError and TimeoutError are OSErrors; ValueError is an address that cannot be parsed.
        return False


def get(url: str, *, key: str | None = None, roots: Path | None = None) -> Answer:
    """What one of our own services answers, never through a proxy; https is verified with `roots`."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if roots is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(roots))))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            return Answer(response.status, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read())
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, str(error).encode())
