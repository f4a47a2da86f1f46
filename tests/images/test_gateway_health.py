"""The health check of the gateway's image, run as the image runs it."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running import Gateway, free_port

SCRIPT = Path(__file__).parent.parent.parent / "deploy" / "gateway_health.py"


def ask(port: int | str, host: str = "") -> "subprocess.CompletedProcess[str]":
    """With the interpreter's flags that stand in its first line."""
    environ = os.environ | {"GATEWAY_PORT": str(port), "GATEWAY_HOST": host}
    argv = [sys.executable, "-IS", str(SCRIPT)]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port where one caller is answered so."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("host", ["", "0.0.0.0", "127.0.0.1"])  # noqa: S104  the image's own
def test_a_gateway_that_serves_is_healthy(gateway: Gateway, host: str) -> None:
    """Wherever it listens; nothing is said."""
    done = ask(gateway.url.rpartition(":")[2], host)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "gateway-health: HTTP/1.1 503 Service Unavailable"),
        (b"HTTP/1.1 404 200\r\n\r\n", "gateway-health: HTTP/1.1 404 200"),
        (b"", "gateway-health: an empty answer"),
    ],
)
def test_any_other_answer_is_not(answer: bytes, said: str) -> None:
    """`docker inspect` shows the one line."""
    with answering(answer) as port:
        done = ask(port)
    assert (done.returncode, done.stderr) == (1, said + "\n")


def test_no_gateway_is_not() -> None:
    """Neither a traceback nor another code than 1, which Docker reserves."""
    done = ask(free_port())
    assert done.returncode == 1
    assert done.stderr.startswith("gateway-health: no answer: ")
    assert done.stderr.count("\n") == 1


def test_a_gateway_that_hangs_is_told_before_docker_gives_up() -> None:
    """It accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = ask(server.getsockname()[1])
    assert (done.returncode, done.stderr) == (1, "gateway-health: no answer: timed out\n")
