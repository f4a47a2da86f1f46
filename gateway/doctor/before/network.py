"""Ports that are taken, and ports that should not be reached from elsewhere."""

from collections.abc import Iterator, Sequence

from gateway.doctor.evidence import Compose, Container, Port, Published
from gateway.doctor.finding import Finding, Unseen, seen

LOOPBACK = ("127.", "::1", "[::1]", "localhost")
EDGE = "caddy"


def ports(wanted: Sequence[Port]) -> Iterator[Finding]:
    """Whether the ports that we listen on are free, or ours already; by whom they are taken otherwise."""
    check = "ports"
    taken = [port for port in wanted if port.owner and not port.ours]
    for port in taken:
        title = f"Port {port.number} is taken by {port.owner}"
        shows = f"sudo ss -ltnp 'sport = :{port.number}' shows more"
        evidence = f"{port.setting} wants {port.number}"
        if port.moves:
            mend = f"make up takes the next free one and says which; {shows}"
            yield Finding(check, "hint", title, evidence, mend)
        else:
            mend = f"{shows}; stop it, or choose another: {port.setting}={_another(port, wanted)}"
            yield Finding(check, "error", title, evidence, mend)
    if not taken:
        told = (f"{port.number} {'ours' if port.ours else 'free'}" for port in wanted)
        yield Finding(check, "ok", "Ports", ", ".join(told))


def _another(port: Port, wanted: Sequence[Port]) -> int:
    """One that no other setting has."""
    ours = {one.number for one in wanted}
    return next((number for number in range(port.number + 1, 65_536) if number not in ours), 8090)


def published(compose: Compose | Unseen, containers: Sequence[Container] | Unseen) -> Iterator[Finding]:
    """Whether anything but Caddy is reached from other machines: the engine's port would be open to all."""
    found = dict[tuple[str, Published], None]()
    for service in seen(compose).services.values():
        found |= {(service.name, port): None for port in service.published}
    for container in containers if not isinstance(containers, Unseen) else ():
        found |= {(container.service, port): None for port in container.published}
    wrong = [(name, port) for name, port in found if name != EDGE and not port.address.startswith(LOOPBACK)]
    for name, port in wrong:
        where = f"{port.address or '0.0.0.0'}:{port.port}"  # noqa: S104 an address that is shown
        title = f"The service {name} is reached from other machines on port {port.port}"
        mend = (
            f'in the compose file of {name}, write ports: ["127.0.0.1:{port.port}:{port.target}"] or leave '
            "ports out, then make up (Docker goes around ufw)"
        )
        yield Finding("published-ports", "error", title, f"{where} -> {port.target}", mend)
    if not wrong:
        told = ", ".join(f"{name} {port.address}:{port.port}" for name, port in found) or "none"
        yield Finding("published-ports", "ok", "Only Caddy is reached from other machines", told)
