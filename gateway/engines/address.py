"""Where an engine is, taken from its URL. Nothing is resolved or connected here."""

from dataclasses import dataclass
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port to connect to, whether by TLS, what `Host` says, and the path before each target."""

    host: str
    port: int
    secure: bool
    authority: bytes
    base: bytes


def parse(url: str) -> Address:
    """The address in a URL without query and credentials. Raises ValueError, its text for the operator."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError("an engine's URL looks like http://host:8000 or https://host")
    try:
        host = parts.hostname.encode("idna").decode()
        base = parts.path.rstrip("/").encode("ascii")
    except UnicodeError:
        raise ValueError("an engine's URL names a host that can exist, and its path is ASCII") from None
    return Address(
        host=host,
        port=parts.port or PORTS[parts.scheme],
        secure=parts.scheme == "https",
        authority=_authority(host, parts.port),
        base=base,
    )


def _authority(host: str, port: int | None) -> bytes:
    name = f"[{host}]" if ":" in host else host
    return (f"{name}:{port}" if port else name).encode()
