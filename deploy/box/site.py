"""SITE: the names that callers use. What Caddy does with each kind: deploy/caddy/start.sh, docs/tls.md."""

import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

OFF = "off"
FALLBACK = "localhost"
TAILSCALE = ".ts.net"
TAILSCALE_SOCKET = Path("/var/run/tailscale/tailscaled.sock")

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")


def names(site: str) -> list[str]:
    """The names in SITE, the first of which is printed; none if it is off."""
    return [] if site.strip().lower() == OFF else re.findall(r"[^\s,]+", site.lower())


def trouble(site: str) -> str:
    """What is wrong with a SITE, in one line with its mend; empty if nothing is."""
    if site.strip().lower() == OFF:
        return ""
    if not names(site):
        return "SITE is empty: write the name that callers use, as in SITE=spark.lan, or SITE=off."
    for name in names(site):
        if name == OFF:
            return "SITE=off stands alone: it means that no Caddy is started."
        if not (_is_address(name) or (_NAME.fullmatch(name) and not name.rpartition(".")[2].isdigit())):
            return f"SITE holds {name!r}, which is no host name: names alone, no https://, no port, no path."
    return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def usual(host: str | None = None) -> str:
    """The name of this host in its own network: as it is if it has a domain, else under `.local` (mDNS)."""
    name = (host or socket.gethostname()).lower().rstrip(".")
    if name.partition(".")[0] == FALLBACK or not _NAME.fullmatch(name):
        return FALLBACK
    return name if "." in name else f"{name}.local"


def url(variables: Mapping[str, str]) -> str:
    """Where a browser finds what is behind Caddy; with SITE=off Grafana's own port."""
    found = names(variables["SITE"])
    if not found:
        return f"http://127.0.0.1:{variables.get('GRAFANA_PORT') or '3000'}"
    port = variables.get("HTTPS_PORT") or "443"
    return f"https://{found[0]}" + ("" if port == "443" else f":{port}")


def on_tailscale(site: str) -> bool:
    """Whether one of the names is certified by the host's tailscaled."""
    return any(name.endswith(TAILSCALE) for name in names(site))


def resolves(name: str) -> bool:
    """Whether this host finds an address for a name."""
    try:
        socket.getaddrinfo(name.strip("[]"), None)
    except OSError:
        return False
    return True
