"""Caddy's certificate authority, handed out: its root certificate, and a bundle with the system's roots.

A client that takes one bundle alone would lose the rest of the world with our root by itself.
"""

import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

import certifi

from deploy.local import whole_file
from deploy.local.places import Places

ROOT = "pki/authorities/local/root.crt"
USUAL_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def system_roots(environ: Mapping[str, str] = os.environ, usual: Iterable[str] | None = None) -> Path:
    """The bundle of roots that programs here trust: the operator's own, the system's, else certifi's."""
    system = [ssl.get_default_verify_paths().cafile, *USUAL_BUNDLES] if usual is None else usual
    files = (Path(name) for name in [environ.get("SSL_CERT_FILE"), *system] if name)
    return next((file for file in files if file.is_file()), Path(certifi.where()))


def export(places: Places, roots: Path) -> None:
    """Writes `data/ca.crt` and `data/ca-bundle.pem`. Raises FileNotFoundError before Caddy made its root."""
    own = (places.caddy_storage / ROOT).read_text(encoding="ascii")
    whole_file.replace(places.ca_certificate, own, mode=whole_file.PUBLIC)
    others = roots.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    whole_file.replace(places.ca_bundle, f"{others}\n\n{own}", mode=whole_file.PUBLIC)
