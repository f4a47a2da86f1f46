"""SITE: the names that callers use. What Caddy does with each kind: deploy/caddy/start.sh, docs/tls.md."""

import re
import socket
import string
from collections.abc import Mapping
from ipaddress import IPv6Address
from pathlib import Path

OFF = "off"
FALLBACK = "localhost"
TAILSCALE = ".ts.net"
TAILSCALE_SOCKET = Path("/var/run/tailscale/tailscaled.sock")

# As deploy/caddy/start.sh has them, which is what refuses a SITE when Caddy starts.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"(?:{_BYTE}\.){{3}}{_BYTE}")
_ADDRESS_6 = re.compile(r"\[[0-9a-f:]*:[0-9a-f:]*:[0-9a-f:]*\]")
_BARE_6 = re.compile(r"[0-9a-f:]*:[0-9a-f:]*:[0-9a-f:]*")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_LONGEST_NAME = 253
# Only the letters that host names are made of: others have no capitals that a certificate would know.
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def names(site: str) -> list[str]:
    """The names in SITE, each once, as they stand in a URL; the first is printed. None if it is off."""
    if site.strip().lower() == OFF:
        return []
    found = re.findall(r"[^ ,\t\n]+", site.translate(_SMALL))
    return list(dict.fromkeys(f"[{name}]" if _BARE_6.fullmatch(name) else name for name in found))


def trouble(site: str) -> str:
    """What is wrong with a SITE, in one line with its mend; empty if nothing is."""
    if site.strip().lower() == OFF:
        return ""
    found = names(site)
    if not found:
        return "SITE is empty: write the name that callers use, as in SITE=spark.lan, or SITE=off."
    for name in found:
        if name == OFF:
            return "SITE=off stands alone: it means that no Caddy is started."
        if not (_is_address(name) or _is_name(name)):
            return f"SITE holds {name!r}, which is no host name: names alone, no https://, no port, no path."
    if len([name for name in found if _is_address(name)]) > 1:
        return (
            "SITE holds two addresses: one is all that works, as a client that calls one does not say which."
        )
    return ""


def _is_name(name: str) -> bool:
    return (
        bool(_NAME.fullmatch(name)) and not name.rpartition(".")[2].isdigit() and len(name) <= _LONGEST_NAME
    )


def _is_address(name: str) -> bool:
    if not _ADDRESS_6.fullmatch(name):
        return bool(_ADDRESS.fullmatch(name))
    try:
        # The script takes all that looks like one, and Caddy would not start with what is none.
        IPv6Address(name.strip("[]"))
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
