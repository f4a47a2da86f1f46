"""What the engine was told to do, what it saw and what it counted; tests wait here for a count."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.fake_engine.wire import Request

PROBES = ("/health", "/v1/models")
EXACT = ("running", "open")
COUNTERS = ("accepted", "connections", "requests", "answered", "aborted", *EXACT)


@dataclass(slots=True)
class Rule:
    """One script: its steps, the path it is for, when it is played, how often it still may be."""

    steps: list[dict[str, Any]]
    path: str | None = None
    times: int | None = None
    at: str = "body"

    def matches(self, path: str) -> bool:
        """Whether it is for a request to this path."""
        return path == self.path if self.path is not None else path not in PROBES


class Journal:
    """The state of one fake engine."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.requests: list[Request] = []
        self.gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.counts = dict.fromkeys(COUNTERS, 0)
        self._changed = asyncio.Condition()

    def reset(self) -> None:
        """Forget scripts, requests and counts. What is open and running now is still counted."""
        self.rules.clear()
        self.requests.clear()
        self.gates.clear()
        self.counts |= {name: 0 for name in COUNTERS if name not in EXACT}

    def rule_at_connect(self) -> Rule | None:
        """The script to be played on a new connection before anything is read."""
        return self._use(next((rule for rule in self.rules if rule.at == "connect"), None))

    def rule_for(self, path: str) -> Rule | None:
        """The script for a request to this path."""
        fitting = (rule for rule in self.rules if rule.at != "connect" and rule.matches(path))
        return self._use(next(fitting, None))

    async def count(self, name: str, step: int = 1) -> None:
        """Count, and let those who wait look again."""
        async with self._changed:
            self.counts[name] += step
            self._changed.notify_all()

    async def wait(self, wanted: dict[str, int], timeout: float) -> bool:
        """Whether the counts were reached in time: at least so many, of those in `EXACT` exactly so many."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: all(self._reached(*pair) for pair in wanted.items()))
        except TimeoutError:
            return False
        return True

    def _reached(self, name: str, wanted: int) -> bool:
        count = self.counts[name]
        return count == wanted if name in EXACT else count >= wanted

    def _use(self, rule: Rule | None) -> Rule | None:
        if rule is not None and rule.times is not None:
            rule.times -= 1
            if rule.times == 0:
                self.rules.remove(rule)
        return rule
