"""Waiting for what comes, with a deadline."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 60.0


def wait_until(reached: Callable[[], bool]) -> None:
    """Returns once something is so; fails after a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)
