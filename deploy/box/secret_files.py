"""The files in secrets/: each made once, with the mode that its readers need, and checked before every start.

Containers get single files by bind mount, so the directory can be the operator's alone; they read the
files as members of the operator's group.
"""

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from deploy.alertmanager import configuration, receivers
from deploy.box.places import Places
from deploy.box.variables import group as named_group
from deploy.local import authority, whole_file
from deploy.local.problem import Problem
from deploy.local.progress import console

FOR_CONTAINERS = 0o640
REQUIRED = ("admin-token", "grafana-password")
ONE_LINE = (*REQUIRED, "hf-token", "alert-url", "smtp-password")
PUBLIC = ("ca.crt", "ca-bundle.pem")

OPEN_WEBUI = "open-webui-key"
ALERTS = "alertmanager.yml"


def ensure(places: Places, variables: Mapping[str, str], alert_url: str, environ: Mapping[str, str]) -> None:
    """Makes what is missing. Raises Problem if ALERT_URL, or what is needed for it, is not usable."""
    group = named_group(variables)
    make_folder(places)
    made = {
        "admin-token": secrets.token_urlsafe(32),
        "grafana-password": secrets.token_urlsafe(18),
        "hf-token": environ.get("HF_TOKEN", "").strip(),
        "smtp-password": environ.get("SMTP_PASSWORD", ""),
        "ca-bundle.pem": authority.system_roots(environ).read_text(encoding="utf-8", errors="replace"),
    }
    if uses_open_webui(variables):
        made[OPEN_WEBUI] = ""
    if not (places.secrets / ALERTS).exists():
        made |= _alerts(places, alert_url, environ)
    for name, text in made.items():
        if not (places.secrets / name).exists():
            whole_file.replace(places.secrets / name, text, mode=FOR_CONTAINERS, group=group)


def make_folder(places: Places) -> None:
    """Makes secrets/, the operator's alone; shuts one that others may look into, and says so."""
    places.secrets.mkdir(mode=0o700, exist_ok=True)
    mode = stat.S_IMODE(places.secrets.stat().st_mode)
    if mode & 0o077:
        # Files in it are open to a group: it is the folder that keeps others of this host out.
        places.secrets.chmod(mode & 0o700)
        console().print(f"[yellow]![/yellow] secrets/ had mode {mode:04o}, open to others: it is 0700 now.")


def _alerts(places: Places, alert_url: str, environ: Mapping[str, str]) -> dict[str, str]:
    kept = places.secrets / "alert-url"
    url = alert_url or (kept.read_text(encoding="utf-8").strip() if kept.exists() else "")
    host, sender, user = (environ.get(name, "") for name in ("SMTP_HOST", "SMTP_FROM", "SMTP_USER"))
    smtp = receivers.Smtp(host, sender, user) if host else None
    try:
        return {"alert-url": configuration.address(url), ALERTS: configuration.render(url, smtp)}
    except receivers.BadAlertUrl as error:
        raise Problem(str(error)) from error


def uses_open_webui(variables: Mapping[str, str]) -> bool:
    """Whether the optional chat interface is part of the stack."""
    return "open-webui.yaml" in variables.get("COMPOSE_FILE", "")


def troubles(places: Places, variables: Mapping[str, str]) -> list[str]:
    """What is wrong with the files that are there: one line each, naming the file and never what is in it."""
    if not places.secrets.exists():
        return []
    if not places.secrets.is_dir():
        return [f"{places.secrets} is no directory: move it away, then make up."]
    if places.secrets.stat().st_uid != os.geteuid() or not os.access(
        places.secrets, os.R_OK | os.W_OK | os.X_OK
    ):
        return [f"{places.secrets} is not yours: run make as its owner, or give it to your user (chown -R)."]
    group = named_group(variables)
    names = [*ONE_LINE, ALERTS, *([OPEN_WEBUI] if uses_open_webui(variables) else [])]
    found = (_trouble(places.secrets / name, group) for name in names if (places.secrets / name).exists())
    return [line for line in found if line]


def _trouble(file: Path, group: int) -> str:
    where = f"secrets/{file.name}"
    if file.is_dir():
        return (
            f"{where} is a directory, as Docker makes one for a file that is missing: rmdir it, then make up."
        )
    if not os.access(file, os.R_OK):
        return f"{where} cannot be read by your user: give it to you (chown), mode 0640."
    seen = file.stat()
    if not (seen.st_mode & 0o004 or (seen.st_mode & 0o040 and seen.st_gid == group)):
        return f"{where} cannot be read by containers: chgrp {group} {where} && chmod 0640 {where}"
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if file.name == ALERTS and not lines:
        return (
            f"{where} is empty: remove it, and make up writes it anew from secrets/alert-url (or ALERT_URL)."
        )
    if file.name in REQUIRED and not lines:
        return f"{where} is empty: put a secret in, or remove the file and make up makes a new one."
    if file.name in ONE_LINE and len(lines) > 1:
        return f"{where} holds {len(lines)} lines: a secret is one line."
    return ""
