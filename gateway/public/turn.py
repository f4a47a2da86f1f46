"""Long work in the event loop, cut so that others have their turn."""

import asyncio
import time

MOST_SECONDS = 0.002


class Turn:
    """`await turn.end()` between the steps of a long work lets others run every two milliseconds."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends = time.perf_counter() + MOST_SECONDS

    async def end(self) -> None:
        """Let others run, if it is time."""
        if time.perf_counter() > self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + MOST_SECONDS
