"""`python -m tests.prepare`: fetches and builds what later tests need, while earlier ones run.

Whatever it has not done when a test needs it, that test waits for or does itself. It ends when its standard
input does, so that it does not outlive the tests; what it leaves half done, the next run does anew.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from deploy.local import engine, models
from deploy.local.problem import Problem
from tests.prometheus import programs
from tests.stack import checkout, images, machine
from tests.stack.commands import CommandFailed
from tests.stack.debian import AptFailure

END_SECONDS = 20.0


def main() -> None:
    """All of it, the engine first: it is needed first, and vLLM's image is made of it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.nice(10)
    try:
        with contextlib.suppress(programs.Unavailable):
            programs.find()
        engine.install()
        models.smollm2()
        models.tiny_qwen3()
        if not machine.why_not():
            asyncio.run(_images())
    except (Problem, AptFailure, CommandFailed) as failure:
        sys.exit(f"not prepared, so that the tests will try: {failure}")


async def _images() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with machine.docker() as docker:
            copy = checkout.copy(Path(folder) / "checkout")
            await images.provide(docker, copy)
            await images.build_gateway(docker, copy)


def _end_with_input() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)  # which ends Docker and sweeps
    time.sleep(END_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
