"""What an edited .env lacks, said with the line to write: Compose and we would stumble over it later."""

import os
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from deploy.box import first_run, profiles, site, variables
from deploy.box.places import Places
from deploy.local.problem import Problem

NEEDED = (
    "SITE", "SITE_URL", "SECRETS_GID", "PROFILE_FILE", "GATEWAY_CONFIG_FILE", "COMPOSE_FILE",
    "EDGE_NET", "OPS_NET",
)  # fmt: skip
# Files of this checkout that are not what a profile adds to compose.yaml.
OTHER_PARTS = frozenset(
    {
        "compose.yaml",
        "deploy/site-off.yaml",
        "deploy/open-webui.yaml",
        "deploy/gpu-energy.yaml",
        "deploy/caddy/tailscale.yaml",
        "deploy/monitoring.yaml",
    }
)
OVERLAYS = PurePosixPath("deploy/profiles/compose")


def check(places: Places, found: Mapping[str, str]) -> None:
    """Returns if .env says all that is needed. Raises Problem with one line for each that it does not."""
    if lines := list(troubles(places, found)):
        raise Problem("\n  - ".join(["this in .env stands in the way:", *lines]))


def troubles(places: Places, found: Mapping[str, str]) -> Iterator[str]:
    """One line, with its mend, for each variable that is missing or cannot be meant."""
    usual = _usual(found)
    for name in NEEDED:
        if not found.get(name):
            yield f"{name} is missing or empty: write {name}={usual[name]}"
    if found.get("SECRETS_GID") and not variables.is_number(found["SECRETS_GID"]):
        yield f"SECRETS_GID={found['SECRETS_GID']} is no number: write SECRETS_GID={os.getgid()}"
    for name in ("HTTP_PORT", "HTTPS_PORT", "GATEWAY_PORT", "GRAFANA_PORT", "OPEN_WEBUI_PORT"):
        if found.get(name) and not is_port(found[name]):
            yield f"{name}={found[name]} is no port: write a number up to 65535."
    if found.get("EDGE_NET") and found.get("EDGE_NET") == found.get("OPS_NET"):
        yield f"EDGE_NET and OPS_NET are both {found['EDGE_NET']}: write two subnets that differ."
    if found.get("COMPOSE_FILE"):
        yield from _stack(places, found, usual["COMPOSE_FILE"])


def is_port(value: str) -> bool:
    """Whether it is the number of a port."""
    return variables.is_number(value) and len(value) <= 5 and 0 < int(value) < 65_536


def _usual(found: Mapping[str, str]) -> dict[str, str]:
    """What a first `make up` would have written for this profile and SITE."""
    given = {"SITE": found.get("SITE") or site.usual()}
    given |= {name: found[name] for name in first_run.TAKEN_AS_GIVEN if found.get(name)}
    return first_run.plan(found.get("PROFILE", ""), [], given)


def _stack(places: Places, found: Mapping[str, str], usual: str) -> Iterator[str]:
    files = [str(PurePosixPath(name)) for name in found["COMPOSE_FILE"].split(":") if name]
    if "compose.yaml" not in files:
        yield f"COMPOSE_FILE lacks compose.yaml: write COMPOSE_FILE={usual}"
    profile = found.get("PROFILE", "")
    foreign = {str(OVERLAYS / f"{name}.yaml") for name in profiles.NEEDS if name != profile}
    if profile in profiles.known(places) and not {*files} - OTHER_PARTS - foreign:
        yield f"COMPOSE_FILE lacks the overlay of the profile {profile}: write COMPOSE_FILE={usual}"
