"""Waits for a stack to come up, and stops waiting as soon as one of its services dies instead."""

import time
from collections.abc import Callable

from deploy.local import supervision
from deploy.local.places import Places
from deploy.local.problem import Problem
from deploy.local.processes import tail
from deploy.local.progress import Step

POLL_SECONDS = 0.3
DEAD = frozenset({"BACKOFF", "FATAL", "EXITED"})


class Watch:
    """Over the services of one stack, made before they start: one that was restarted has died, too."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._first: dict[str, int] = {}
        # Logs go on from run to run, and what earlier ones wrote explains nothing now.
        self._sizes = {log: log.stat().st_size for log in places.logs.glob("*.log")}

    def until(self, reached: Callable[[], bool], progress: Step, seconds: float) -> None:
        """Returns once `reached`. Raises Problem if a service dies first, or the time is over."""
        deadline = time.monotonic() + seconds
        while not reached():
            self._check()
            if time.monotonic() > deadline:
                raise Problem(
                    f"{progress.title} took over {seconds:.0f} s.",
                    "`make logs` says why; then make up again.",
                )
            progress.note("".join(self._tail("engine", 1)))
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        for name, now in supervision.states(self._places).items():
            first = self._first.setdefault(name, now.process) or now.process
            if now.state in DEAD or now.process != first:
                log = supervision.log_file(self._places, name)
                lines = [f"{name} died while starting. The last lines of {log}:", *self._tail(name, 12)]
                raise Problem("\n    ".join(lines))

    def _tail(self, name: str, lines: int) -> list[str]:
        log = supervision.log_file(self._places, name)
        return tail(log, lines, since=self._sizes.get(log, 0))
