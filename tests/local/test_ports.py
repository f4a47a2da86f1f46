"""Ports: the usual ones, or the next that are free, and each moved one is told."""

import socket
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from deploy.local import ports
from deploy.local.ports import Ports
from deploy.local.problem import Problem


def listener(address: str = "127.0.0.1") -> socket.socket:
    """A socket that listens on a port of its own."""
    return socket.create_server((address, 0))


def test_free_ports_stay() -> None:
    """Ports that nobody holds are taken as they are, and nothing is told."""
    with ExitStack() as stack:
        held = [stack.enter_context(closing(listener())).getsockname()[1] for _ in range(4)]
    wanted = Ports(*held)
    assert ports.choose(wanted) == wanted
    assert ports.moved(wanted, wanted) == []


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104  # the other one is the case
def test_taken_port_moves_on(address: str) -> None:
    """A port that somebody listens on, on loopback or everywhere, is passed over, and that is told."""
    with closing(listener(address)) as other:
        taken = other.getsockname()[1]
        wanted = Ports(https=taken)
        chosen = ports.choose(wanted)
        assert chosen.https > taken
        assert f"Port {taken} is taken: https listens on {chosen.https}." in ports.moved(wanted, chosen)


def test_no_port_twice() -> None:
    """Two services that want one port get two."""
    with closing(listener()) as other:
        free = other.getsockname()[1]
    chosen = ports.choose(Ports(https=free, gateway=free, ops=free, engine=free))
    assert len({chosen.https, chosen.gateway, chosen.ops, chosen.engine}) == 4


def test_ports_just_used_are_free() -> None:
    """Connections that were closed a moment ago do not make a port taken."""
    with closing(listener()) as server:
        port = server.getsockname()[1]
        with closing(socket.create_connection(("127.0.0.1", port))) as client:
            accepted, _ = server.accept()
            accepted.close()
            assert client.recv(1) == b""
    assert ports.is_free(port)


def test_none_left() -> None:
    """Where no port is left above the wanted one, the message names the service and the mend."""
    with closing(listener()) as other:
        taken = other.getsockname()[1]
        with pytest.raises(Problem, match=r"No free port for engine from 65536 on: stop what listens"):
            ports.choose(Ports(https=taken + 0, engine=65_536))


def test_remembered(tmp_path: Path) -> None:
    """The ports of a running stack are found again."""
    chosen = Ports(https=1, gateway=2, ops=3, engine=4)
    ports.save(chosen, tmp_path / "ports.json")
    assert ports.load(tmp_path / "ports.json") == chosen
    assert chosen.base_url == "https://localhost:1/v1"
