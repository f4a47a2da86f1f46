"""Which ports the stack listens on: the usual ones, or the next that are free."""

import errno
import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local.problem import Problem

TRIED = 100


@dataclass(frozen=True)
class Ports:
    """One port a listener, all on loopback."""

    https: int = 8443
    gateway: int = 8080
    ops: int = 8081
    engine: int = 8000

    @property
    def base_url(self) -> str:
        """What an SDK is pointed at."""
        return f"https://localhost:{self.https}/v1"


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of loopback, or of all addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections that were just closed do not count; a listener does all the same.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def choose(wanted: Ports) -> Ports:
    """The wanted ports, each moved on to the next free one if it is taken. Raises Problem if none is free."""
    chosen: dict[str, int] = {}
    for name, port in asdict(wanted).items():
        chosen[name] = _next_free(name, port, frozenset(chosen.values()))
    return Ports(**chosen)


def _next_free(name: str, wanted: int, given: frozenset[int]) -> int:
    for port in range(wanted, min(wanted + TRIED, 65_536)):
        if port not in given and is_free(port):
            return port
    raise Problem(
        f"No free port for {name} from {wanted} on: stop what listens there, then run make up again."
    )


def moved(wanted: Ports, chosen: Ports) -> list[str]:
    """One line for each port that was taken."""
    pairs = zip(asdict(wanted).items(), asdict(chosen).values(), strict=True)
    return [f"Port {old} is taken: {name} listens on {new}." for (name, old), new in pairs if old != new]


def save(ports: Ports, file: Path) -> None:
    """Remembers the ports of a running stack."""
    file.write_text(json.dumps(asdict(ports)), encoding="utf-8")


def load(file: Path) -> Ports:
    """The ports that were remembered."""
    return Ports(**json.loads(file.read_text(encoding="utf-8")))


def loopback_addresses() -> tuple[str, ...]:
    """The loopback addresses of this machine: IPv6 may be switched off."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return ("127.0.0.1",)
    return ("127.0.0.1", "::1")
