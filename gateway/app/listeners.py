"""Two uvicorn servers in one process, bound before anything starts and driven by us alone."""

import contextlib
import math
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from gateway.app.protocol import BoundedProtocol

BACKLOG = 4096


class CannotListen(Exception):
    """A port is taken or not ours to open; the message names the mend."""


class Listener(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Close the listening socket and idle connections; `serve` returns when all are closed."""
        self.should_exit = True


def bind(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket. Raises CannotListen with the setting that mends it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]  # what follows says the address again
        raise CannotListen(
            f"cannot listen on {host}:{port}: {reason}. "
            f"End what uses the port, or set {setting} to another one."
        ) from error


def listener(
    app: ASGIApp, *, keep_alive_seconds: float, client_stall_seconds: float, grace_seconds: int
) -> Listener:
    """A server for one application; it serves a socket from `bind`."""
    protocol = type("Protocol", (BoundedProtocol,), {"client_stall_seconds": client_stall_seconds})
    return Listener(
        uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=math.ceil(keep_alive_seconds),
            timeout_graceful_shutdown=grace_seconds,
        )
    )
