"""Waiting for what happens by itself, with a deadline."""

import asyncio
import time
from collections.abc import Callable

from tests.running import PATIENCE_SECONDS


async def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits for the condition; fails after so many seconds, or after a minute if that is more."""
    patience_seconds = max(seconds, PATIENCE_SECONDS)
    deadline = time.monotonic() + patience_seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience_seconds} s"
        await asyncio.sleep(0.01)
