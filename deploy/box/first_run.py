"""What a first `make up` decides and asks, and how it becomes .env. What is there is never changed."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import typer

from deploy.alertmanager import receivers
from deploy.box import networks, profiles, site, variables
from deploy.box.machine import Machine
from deploy.box.networks import Used
from deploy.box.places import Places
from deploy.local.problem import Problem

# Where tools look for an operator's own roots; the first that is a file is what the image is built with.
OWN_ROOTS = (
    "CA_BUNDLE",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
)
TAKEN_AS_GIVEN = ("HTTP_PORT", "HTTPS_PORT", "GATEWAY_PORT", "GRAFANA_PORT", "ACME_EMAIL", "VLLM_IMAGE")


def profile(machine: Machine, asked: str) -> str:
    """The profile that was asked for, else that of the card; empty if neither says one."""
    return asked or profiles.for_machine(machine) or ""


def plan(profile: str, used: list[Used], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a new .env, as the environment and this machine suggest them."""
    edge, ops = networks.choose(used)
    given = {name: environ[name] for name in TAKEN_AS_GIVEN if environ.get(name)}
    planned = {
        "PROFILE": profile,
        "HTTP_PORT": "80",
        "HTTPS_PORT": "443",
        "ACME_EMAIL": "",
        "PROFILE_FILE": f"./deploy/profiles/{profile}.yaml",
        "GATEWAY_CONFIG_FILE": f"./deploy/profiles/gateway/{profile}.toml",
        "WEIGHTS_DIR": _weights(environ),
        "EDGE_NET": environ.get("EDGE_NET") or edge,
        "OPS_NET": environ.get("OPS_NET") or ops,
        "SECRETS_GID": str(os.getgid()),
        **given,
    }
    if environ.get("COMPOSE_PROJECT_NAME"):
        planned["COMPOSE_PROJECT_NAME"] = environ["COMPOSE_PROJECT_NAME"]
    if bundle := own_roots(environ):
        planned["CA_BUNDLE"] = bundle
    return with_site(planned, environ.get("SITE") or site.usual())


def _weights(environ: Mapping[str, str]) -> str:
    # Without a slash Compose would take it for the name of a volume.
    return str(Path(environ["WEIGHTS_DIR"]).expanduser().absolute()) if environ.get("WEIGHTS_DIR") else ""


def own_roots(environ: Mapping[str, str]) -> str:
    """The file with the operator's own roots; empty where the environment names none."""
    files = (Path(environ[name]).expanduser().absolute() for name in OWN_ROOTS if environ.get(name))
    return next((str(file) for file in files if file.is_file()), "")


def with_site(planned: Mapping[str, str], wanted: str) -> dict[str, str]:
    """The variables for another SITE: which files make the stack depends on it."""
    off = not site.names(wanted)
    files = ["compose.yaml", f"deploy/profiles/compose/{planned['PROFILE']}.yaml"]
    files += ["deploy/site-off.yaml"] if off else []
    files += ["deploy/caddy/tailscale.yaml"] if site.on_tailscale(wanted) else []
    return {
        **planned,
        "SITE": site.OFF if off else wanted.strip(),
        "SITE_URL": site.url({**planned, "SITE": wanted}),
        "COMPOSE_FILE": ":".join(files),
        "COMPOSE_PROFILES": "" if off else "edge",
    }


def asked_for(planned: dict[str, str], environ: Mapping[str, str] = os.environ) -> tuple[dict[str, str], str]:
    """The variables and ALERT_URL, asked for on a terminal as far as the environment does not say them."""
    alert_url = environ.get("ALERT_URL", "")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return planned, alert_url
    if not environ.get("SITE"):
        text = "The name that callers use for this box, or off for a proxy of your own (docs/tls.md)"
        planned = with_site(planned, _prompt(text, planned["SITE"], _site))
    if "ALERT_URL" not in environ:
        text = "Where alerts go: https://ntfy.sh/TOPIC, a Slack or other webhook; empty: nowhere"
        alert_url = _prompt(text, "", _alert_url)
    return planned, alert_url


def _prompt(text: str, default: str, parser: Callable[[str], str]) -> str:
    answer: str = typer.prompt(text, default=default, value_proc=parser, show_default=bool(default), err=True)
    return answer


def _site(text: str) -> str:
    if trouble := site.trouble(text):
        raise typer.BadParameter(trouble)
    return text


def _alert_url(text: str) -> str:
    try:
        receivers.receiver(text)
    except receivers.BadAlertUrl as error:
        raise typer.BadParameter(str(error)) from error
    return text


def write(places: Places, planned: Mapping[str, str]) -> None:
    """Writes .env. Raises Problem if another command has just done so."""
    try:
        variables.write(places, planned)
    except FileExistsError as error:
        raise Problem(
            f"{places.env_file} has just been written by another command: make up again."
        ) from error


def differences(found: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """One line for each variable that was given now and that .env says otherwise: .env is what counts."""
    names = ("PROFILE", "SITE", "HTTP_PORT", "HTTPS_PORT", "WEIGHTS_DIR", "EDGE_NET", "OPS_NET")
    return [
        f"{name}={environ[name]} was given, and .env says {name}={found.get(name, '')}: .env is what counts, "
        "and yours to change; then make up again."
        for name in names
        if environ.get(name) and environ[name] != found.get(name, "")
    ]
