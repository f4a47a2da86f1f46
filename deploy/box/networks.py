"""Which subnets this host uses already, and a pair of /24 that it does not."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from deploy.box import docker
from deploy.box.containers import LABEL
from deploy.box.places import Places
from deploy.local.problem import Problem

ROUTES = Path("/proc/net/route")
USUAL = ("172.30.80", "172.30.81")
PREFIX = re.compile(r"(?:\d{1,3}\.){2}\d{1,3}")

# Beyond Docker's own pools (172.17 to 172.31, 192.168), in case that all of 172.30 is taken.
CANDIDATES = tuple(
    (f"{net}.{third}", f"{net}.{third + 1}") for net in ("172.30", "10.213") for third in range(80, 250, 2)
)


@dataclass(frozen=True)
class Used:
    """A subnet and who has it."""

    subnet: IPv4Network
    by: str


def in_use(places: Places, project: str, routes: Path = ROUTES) -> list[Used]:
    """The subnets of Docker's networks and of the host's routes, without this stack's own."""
    described = _of_docker(places)
    own = [used.subnet for used in described if used.by == project]
    others = [used for used in described if used.by != project]
    return others + [used for used in of_host(routes) if used.subnet not in own]


def _of_docker(places: Places) -> list[Used]:
    ids = docker.tried(places, "network", "ls", "-q").out.split()
    told = docker.tried(places, "network", "inspect", *ids).out if ids else ""
    found = []
    for network in json.loads(told or "[]"):
        by = (network.get("Labels") or {}).get(f"{LABEL}.project") or f"Docker's network {network['Name']}"
        subnets = [part.get("Subnet", "") for part in (network.get("IPAM") or {}).get("Config") or []]
        found += [Used(IPv4Network(subnet, strict=False), by) for subnet in subnets if "." in subnet]
    return found


def of_host(routes: Path) -> list[Used]:
    """The kernel's table: an interface, then destination, …, mask as little-endian hexadecimal numbers."""
    if not routes.exists():
        return []
    found = []
    for line in routes.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        mask, destination = (bytes.fromhex(fields[at])[::-1] for at in (7, 1))
        prefix = int.from_bytes(mask).bit_count()
        # The way to everything is in nobody's way.
        if prefix:
            found.append(Used(IPv4Network((destination, prefix), strict=False), f"the interface {fields[0]}"))
    return found


def taken(prefix: str, used: Iterable[Used]) -> Used | None:
    """Who has the subnet of a prefix like `172.30.80`, or a part of it; None if it is free.

    Raises Problem if it is no prefix.
    """
    try:
        subnet = IPv4Network(f"{prefix}.0/24")
    except ValueError as error:
        raise Problem(
            f"{prefix!r} is no prefix of a subnet: write three numbers, as in {USUAL[0]}."
        ) from error
    return next((other for other in used if other.subnet.overlaps(subnet)), None)


def choose(used: list[Used]) -> tuple[str, str]:
    """The usual prefixes, or the next pair that nobody has. Raises Problem if there is none."""
    for pair in CANDIDATES:
        if not any(taken(prefix, used) for prefix in pair):
            return pair
    raise Problem(
        "No two free subnets were found: name your own with EDGE_NET=10.1.2 OPS_NET=10.1.3 make up."
    )
