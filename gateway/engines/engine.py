"""One engine: its address, its client and what is known of its health. The registry alone changes that."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from gateway.engines.client import Client
from gateway.engines.pulse import Pulse

PROBE_GAP_SECONDS = 0.1


class Engine:
    """An engine as the relay uses it.

    `up` says whether its last probe was answered well, `reason` why not, `since` (seconds of the
    registry's clock) from when on it has been down. A live failure does not change `up`: it may be
    that one request's fault, so it only makes the next probe come at once. `lengths` are the most tokens
    of a prompt and its answer, by the engine's names of its models, as far as it has told them.
    """

    __slots__ = ("_hurry", "client", "lengths", "probed", "pulse", "reason", "since", "up", "url")

    def __init__(self, url: str, client: Client, clock: Callable[[], float]) -> None:
        self.url = url
        self.client = client
        self.up = False
        self.since = clock()
        self.pulse = Pulse(clock)
        self.lengths: Mapping[str, int] = {}
        self.reason = "not probed yet"
        self.probed = asyncio.Event()
        self._hurry = asyncio.Event()

    def note_failure(self) -> None:
        """A request could not be carried out: look at the engine now."""
        self._hurry.set()

    def note_success(self) -> None:
        """A request went well: if the engine counts as down, look again now."""
        if not self.up:
            self._hurry.set()

    async def rest(self, seconds: float) -> None:
        """Wait for the next probe's time: `seconds`, or less if something was noted."""
        await asyncio.sleep(PROBE_GAP_SECONDS)  # A burst of failures is one reason to look, not hundreds.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        self._hurry.clear()
