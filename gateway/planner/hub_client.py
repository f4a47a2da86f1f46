"""The client that asks a hub, made as the environment says, and what in the environment cannot be."""

import os
import urllib.request
from collections.abc import Mapping

import httpx

from gateway.planner.problem import PlanProblem

_TIMEOUT_SECONDS = 20.0
_PROXY_SCHEMES = ("http", "https")


def connect(base_url: str, headers: Mapping[str, str]) -> httpx.Client:
    """A client to be closed. Raises PlanProblem, naming the variable whose proxy or certificates fail.

    No variable's value is told: a proxy's address may hold a password.
    """
    try:
        return httpx.Client(
            base_url=base_url, headers=headers, follow_redirects=True, timeout=_TIMEOUT_SECONDS
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise PlanProblem(
            f"{_proxy()} names a proxy that cannot be used here: set one as in http://proxy.example:3128, "
            "or unset it."
        ) from error
    except OSError as error:
        raise PlanProblem(
            f"{_certificates()} names certificates that cannot be read ({error.strerror or error}): correct "
            "or unset it."
        ) from error


def _proxy() -> str:
    """The variable whose proxy is of a kind that is not spoken, or else all that may be meant."""
    for kind, address in urllib.request.getproxies().items():
        scheme, separator, _ = address.partition("://")
        if kind in ("http", "https", "all") and separator and scheme.lower() not in _PROXY_SCHEMES:
            return _spelled(f"{kind}_proxy")
    named = [name for name in map(_spelled, ("https_proxy", "http_proxy", "all_proxy")) if name in os.environ]
    # Hosts past the proxy are read with it, and one that is no address ends it as well.
    past = _spelled("no_proxy")
    return " or ".join(named) or (past if past in os.environ else "the system's setting")


def _spelled(name: str) -> str:
    """As it stands in the environment: both cases are read, the lower one first."""
    return name if name in os.environ else name.upper()


def _certificates() -> str:
    """The variable that httpx takes: the first of these that is set."""
    named = (name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name))
    return next(named, "the system's setting")
