"""The gateway as a process: its parts opened, two listeners, signals, and an exit code."""

import asyncio
import contextlib
import resource
import sys

import uvloop

from gateway.app import logs
from gateway.app.listeners import CannotListen
from gateway.app.serve import serve
from gateway.errors import GatewayError
from gateway.settings import Loaded


def run(loaded: Loaded) -> int:
    """Serve until told to stop. Answers the exit code; what keeps it from starting is one line on stderr."""
    logs.configure(loaded.settings.log_format)
    _open_more_files()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(loaded))
    except (CannotListen, GatewayError) as error:
        print(f"gateway: {error}", file=sys.stderr)  # noqa: T201  the line that an operator reads
        return 1
    return 0


def _open_more_files() -> None:
    """A stream takes two descriptors; the customary limit of 1024 is there for programs that use select()."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS calls unlimited what it then refuses
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
