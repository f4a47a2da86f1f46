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
    """Over the services of one stack, from their start on: one that was restarted has died, too."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._first: dict[str, int] = {}

    def until(self, reached: Callable[[], bool], progress: Step, seconds: float) -> None:
        """Returns once `reached`. Raises Problem if a service dies first, or the time is over."""
        deadline = time.monotonic() + seconds
        while not reached():
            self._check()
            if time.monotonic() > deadline:
                raise Problem(
                    f"{progress.title} took over {seconds:.0f} s. `make logs` says why; then make up again."
                )
            progress.note("".join(tail(supervision.log_file(self._places, "engine"), 1)))
            time.sleep(POLL_SECONDS)

    def _check(self) -> None:
        for name, now in supervision.states(self._places).items():
            first = self._first.setdefault(name, now.process) or now.process
            if now.state in DEAD or now.process != first:
                log = supervision.log_file(self._places, name)
                lines = [f"{name} died while starting. The last lines of {log}:", *tail(log, 12)]
                raise Problem("\n    ".join(lines))
