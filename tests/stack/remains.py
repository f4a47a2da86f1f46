"""What a Docker engine leaves in the machine when it ends, and more so when it is killed: removed."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from tests.stack.engine import CGROUP, RUN, cache

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
CGROUPS = Path("/sys/fs/cgroup")
BEFORE = RUN / "before.json"

BRIDGE = r"(?:docker0|br-[0-9a-f]{12})"
# Docker's chains, rules that jump to them, and rules about its bridges.
DOCKERS = re.compile(rf"\bDOCKER\b|\bDOCKER-|\b{BRIDGE}\b")
# That a container reaches itself through its published port; such a rule names no bridge.
HAIRPIN = re.compile(r"-s (?P<own>\S+/32) -d (?P=own) .* -j MASQUERADE$")


def other_engine() -> bool:
    """Whether a dockerd runs that is not of the tests: two would take each other's firewall rules away."""
    return any(exe.name == "dockerd" and cache() not in exe.parents for _, exe in _processes())


def _processes() -> list[tuple[int, Path]]:
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            found.append((int(link.parent.name), link.readlink()))
    return found


def note() -> None:
    """Write down what the engine is about to change: a later run sets it right if this one is killed."""
    RUN.mkdir(mode=0o700, exist_ok=True)
    if not BEFORE.exists():
        policy = re.search(r"^:FORWARD (\S+)", _rules("filter"), re.MULTILINE)
        before = {"forwarding": FORWARDING.read_text(), "policy": policy[1] if policy else "ACCEPT"}
        BEFORE.write_text(json.dumps(before))


def sweep() -> None:
    """Remove all of it: processes, bridges, firewall rules, control groups, sockets."""
    for pid, exe in _processes():
        if cache() in exe.parents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    _remove_bridges()
    _remove_rules()
    if BEFORE.exists():
        FORWARDING.write_text(json.loads(BEFORE.read_text())["forwarding"])
    _remove_control_groups()
    shutil.rmtree(RUN, ignore_errors=True)


def _remove_bridges() -> None:
    shown = _told("ip", "-json", "link", "show", "type", "bridge")
    for link in json.loads(shown or "[]"):
        if re.fullmatch(BRIDGE, link.get("ifname", "")):
            _told("ip", "link", "delete", link["ifname"])


def _remove_rules() -> None:
    policy = json.loads(BEFORE.read_text())["policy"] if BEFORE.exists() else None
    for table in ("filter", "nat"):
        rules = _rules(table)
        kept = without_docker(rules)
        if policy and table == "filter":
            kept = [re.sub(r"^:FORWARD \S+", f":FORWARD {policy}", line) for line in kept]
        if kept != rules.splitlines():
            _told("iptables-restore", "--table", table, given="\n".join(kept) + "\n")


def without_docker(rules: str) -> list[str]:
    """The lines of `iptables-save` that are not Docker's."""
    return [line for line in rules.splitlines() if not DOCKERS.search(line) and not HAIRPIN.search(line)]


def _rules(table: str) -> str:
    return _told("iptables-save", "--table", table)


def _told(*argv: str, given: str | None = None) -> str:
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=True).stdout


def _remove_control_groups() -> None:
    # Version 2 has one tree, version 1 one for each controller.
    for top in [CGROUPS / CGROUP, *CGROUPS.glob(f"*/{CGROUP}")]:
        for group, _, _ in os.walk(top, topdown=False):
            # One that still holds a dying process goes with the next sweep.
            with contextlib.suppress(OSError):
                Path(group).rmdir()
