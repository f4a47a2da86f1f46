"""Calls the box as its callers do: over Caddy with its certificate verified, or in plain HTTP with SITE=off.

It goes to this host's own address whatever the name resolves to; what is printed for callers uses the name.
"""

import os
import shlex
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deploy.box import site
from deploy.box.places import Places
from deploy.local import question

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS = 180.0


@dataclass(frozen=True)
class Door:
    """Where callers come in. `name` is empty with SITE=off; `own_authority` says that Caddy's CA is ours."""

    name: str
    port: int
    bundle: Path
    own_authority: bool

    @property
    def base_url(self) -> str:
        """What an SDK is pointed at."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """Scheme, name and port."""
        if not self.name:
            return f"http://{LOOPBACK}:{self.port}"
        return f"https://{self.name}{'' if self.port == 443 else f':{self.port}'}"


def door(places: Places, variables: Mapping[str, str]) -> Door:
    """The door of this box."""
    names = site.names(variables["SITE"])
    port = variables.get("HTTPS_PORT") or "443" if names else variables.get("GATEWAY_PORT") or "8080"
    return Door(names[0] if names else "", int(port), places.ca_bundle, places.ca_certificate.exists())


def call(
    at: Door, path: str, *, key: str = "", body: Mapping[str, Any] | None = None, seconds: float = 10.0
) -> httpx.Response:
    """The answer to a GET, or to a POST of a body. Raises httpx.TransportError if there is none."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url, extensions = at.origin + path, {}
    if at.name:
        url = f"https://{LOOPBACK}:{at.port}{path}"
        headers["Host"] = at.origin.removeprefix("https://")
        extensions = {"sni_hostname": at.name.strip("[]")}
    with httpx.Client(verify=_roots(at), trust_env=False, timeout=seconds) as client:
        return client.request(
            "POST" if body else "GET", url, headers=headers, json=body, extensions=extensions
        )


def _roots(at: Door) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(at.bundle) if at.bundle.exists() else None)


def ask(at: Door, key: str) -> httpx.Response:
    """The answer to one short chat call. Raises httpx.TransportError if there is none."""
    return call(at, "/v1/chat/completions", key=key, body=question.body(), seconds=ANSWER_SECONDS)


def line(at: Door, places: Places, environ: Mapping[str, str] = os.environ) -> str:
    """A curl line for the checkout's folder that answers when it is pasted."""
    secrets = places.secrets.name
    options = [f"--cacert {secrets}/{places.ca_certificate.name}"] if at.name and at.own_authority else []
    host = at.name or LOOPBACK
    if at.name and not site.resolves(at.name):
        options.append(f"--resolve {at.name}:{at.port}:{LOOPBACK}")
    if any(
        environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY")
    ):
        options.append(f"--noproxy {shlex.quote(host)}")
    return (
        f"curl {' '.join([*options, f'{at.base_url}/chat/completions'])} "
        f'-H "Authorization: Bearer $(cat {secrets}/{places.first_key.name})" '
        f"-H 'Content-Type: application/json' -d '{question.pasted()}'"
    )


def certificate_end(at: Door) -> str:
    """Until when the certificate that callers are shown is valid, or why it cannot be verified."""
    try:
        with (
            socket.create_connection((LOOPBACK, at.port), timeout=5) as plain,
            _roots(at).wrap_socket(plain, server_hostname=at.name.strip("[]")) as shown,
        ):
            return str((shown.getpeercert() or {}).get("notAfter", "?"))
    except OSError as error:
        return f"not verified: {error}"
