"""Work that is done again and again behind the request path, until it is told to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

import structlog


class Repeating:
    """Some tasks with one stop. `stopping` is set by whoever ends them; each ends with what it is doing."""

    def __init__(self, log: structlog.stdlib.BoundLogger, failed_event: str) -> None:
        self._log = log
        self._failed_event = failed_event
        self.stopping = asyncio.Event()

    def start(self, work: Callable[[], Coroutine[None, None, None]], seconds: float) -> asyncio.Task[None]:
        """A task that does the work at once, and again so many seconds after it was done.

        A failure is logged and the next time comes: a task that died unseen would be missed by nobody.
        """
        return asyncio.create_task(self._repeat(work, seconds))

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until all is to stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()

    async def _repeat(self, work: Callable[[], Coroutine[None, None, None]], seconds: float) -> None:
        while not self.stopping.is_set():
            try:
                await work()
            except Exception:  # noqa: BLE001  see `start`
                self._log.exception(self._failed_event, task=work.__name__)
            await self.pause(seconds)
