"""Waiting for what happens by itself, with a deadline."""

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float) -> None:
    """Waits for the condition; fails if it does not hold within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.01)
