"""The box's .env: read as Compose reads it, written once; afterwards `make model` alone changes lines."""

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from deploy.box.places import Places
from deploy.local import whole_file
from deploy.local.problem import Problem

PROJECT = "vllm-gateway"

# The order in which they are written, and what an operator who edits one has to know.
MEANING: Mapping[str, str] = MappingProxyType(
    {
        "PROFILE": "The profile of this box: deploy/profiles/.",
        "COMPOSE_FILE": "The files that make the stack; deploy/open-webui.yaml may be added, after a colon.",
        "COMPOSE_PROFILES": "edge: with Caddy. Empty together with SITE=off and deploy/site-off.yaml.",
        "COMPOSE_PROJECT_NAME": "What containers, networks and volumes are named after.",
        "SITE": "The name that callers use, or off: docs/tls.md.",
        "SITE_URL": "Where a browser finds Grafana, without /grafana/: https:// with the first name in SITE.",
        "HTTP_PORT": "Where Caddy listens, on all addresses of this host.",
        "HTTPS_PORT": "",
        "GATEWAY_PORT": "With SITE=off: where gateway and Grafana listen, on 127.0.0.1 alone.",
        "GRAFANA_PORT": "",
        "OPEN_WEBUI_PORT": "With deploy/open-webui.yaml: its port on 127.0.0.1.",
        "ACME_EMAIL": "For a public name: where the certificate authority writes to. May be empty.",
        "PROFILE_FILE": "What `vllm serve` gets, and the gateway's settings: your own copies may stand here.",
        "GATEWAY_CONFIG_FILE": "",
        "BACK_PROFILE_FILE": "The same two of the model before: what `make model BACK=1` returns to.",
        "BACK_GATEWAY_CONFIG_FILE": "",
        "WEIGHTS_DIR": "A Hugging Face cache on this host, absolute. Empty: a volume of the stack.",
        "VLLM_IMAGE": "Another engine image than the profile's.",
        "EDGE_NET": "The first three numbers of two subnets that nobody else on this host uses.",
        "OPS_NET": "",
        "SECRETS_GID": "The group that may read secrets/: containers join it.",
        "CA_BUNDLE": "Roots of a proxy that inspects TLS, for building the image.",
    }
)

HEAD = "# Written once by `make up`: yours to change, then `make up` again. Never in git.\n"
PLAIN = re.compile(r"[\w./:@,+-]*")
LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")


def load(places: Places) -> dict[str, str]:
    """What .env says; empty without one. Raises Problem if it cannot be read."""
    try:
        return parse(places.env_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Problem(f"{places.env_file} is not UTF-8 in line {line}: write that line anew.") from error
    except OSError as error:
        raise Problem(
            f"{places.env_file} cannot be read ({error.strerror}): give it to your user."
        ) from error


def parse(text: str) -> dict[str, str]:
    """The variables of a file like .env; what is quoted keeps its spaces, what is not ends at ` #`."""
    found = (LINE.match(line) for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {match[1]: _value(match[2]) for match in found if match}


def _value(written: str) -> str:
    if written[:1] in {"'", '"'} and (end := written.find(written[0], 1)) > 0:
        return written[1:end]
    return re.split(r"(?:^|\s)#", written, maxsplit=1)[0].rstrip()


def write(places: Places, variables: Mapping[str, str]) -> None:
    """Writes .env, mode 0600. Raises FileExistsError if there is one: it is the operator's."""
    text = HEAD
    for name in [name for name in MEANING if name in variables]:
        text += f"\n# {MEANING[name]}\n" if MEANING[name] else ""
        text += f"{name}={quoted(variables[name])}\n"
    whole_file.create(places.env_file, text, mode=whole_file.PRIVATE)


def change(places: Places, changes: Mapping[str, str]) -> None:
    """Gives variables of .env other values, in one step; all other lines stay as they are.

    One that is not there is added at the end, unless its value is empty.
    """
    file = places.env_file.resolve()
    text = file.read_text(encoding="utf-8")
    for name, value in changes.items():
        line = f"{name}={quoted(value)}"
        pattern = rf"(?m)^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*$"
        text, known = re.subn(pattern, line.replace("\\", r"\\"), text)
        if not known and value:
            text = text.rstrip("\n") + (f"\n\n# {MEANING[name]}" if MEANING[name] else "") + f"\n{line}\n"
    whole_file.replace(file, text, mode=whole_file.PRIVATE)


def group(variables: Mapping[str, str]) -> int:
    """The group that may read secrets/. Raises Problem if .env does not name it by its number."""
    said = variables.get("SECRETS_GID", "")
    if not is_number(said):
        raise Problem(
            f".env says SECRETS_GID={said}: write the number of your group, SECRETS_GID={os.getgid()}"
        )
    return int(said)


def is_number(value: str) -> bool:
    """Whether all of it are digits as Compose takes them: Python alone would take those of other scripts."""
    return value.isascii() and value.isdigit()


def quoted(value: str) -> str:
    """A value as .env takes it literally. Raises Problem for one that it cannot hold."""
    if PLAIN.fullmatch(value):
        return value
    if "'" in value or "\n" in value:
        raise Problem(f"A value with a quotation mark or a line break cannot stand in .env: {value!r}.")
    return f"'{value}'"


def project(variables: Mapping[str, str]) -> str:
    """The name of the Compose project."""
    return variables.get("COMPOSE_PROJECT_NAME") or PROJECT
