"""Waits until all containers of the stack are well, and stops waiting as soon as one of them fails."""

import re
import time
from collections.abc import Iterable

from deploy.box import containers, docker
from deploy.box.containers import Container
from deploy.box.places import Places
from deploy.local.problem import Problem
from deploy.local.progress import Step

POLL_SECONDS = 1.0
LOG_LINES = 12
# Compose clears each line before it writes it, terminal or not, and programs colour theirs (ECMA-48, 5.4).
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
ENDED = frozenset({"exited", "dead", "removing"})
MEND = "`make logs SERVICE={service}` shows all of it. Mend it, then make up again; the rest goes on running."


class Watch:
    """Over the containers of one project, made before they start: one that was restarted since has failed."""

    def __init__(self, places: Places, project: str) -> None:
        self._places = places
        self._project = project
        self._restarts: dict[str, int] = {}

    def until_well(self, services: Iterable[str], progress: Step, seconds: float) -> None:
        """Returns once all services are well. Raises Problem if one fails first, or the time is over."""
        wanted = sorted(services)
        deadline = time.monotonic() + seconds
        while waiting := self._not_well(wanted):
            if time.monotonic() > deadline:
                raise self._failed(waiting[0], f"is not well after {seconds / 60:.0f} minutes")
            progress.note(f"{', '.join(waiting)}: {self._last_line(waiting[-1])}")
            time.sleep(POLL_SECONDS)

    def _not_well(self, wanted: list[str]) -> list[str]:
        found = containers.of_project(self._places, self._project)
        for service in wanted:
            if service in found:
                self._check(found[service])
        return [service for service in wanted if service not in found or not found[service].well]

    def _check(self, one: Container) -> None:
        known = self._restarts.setdefault(one.id, one.restarts)
        if one.state in ENDED or one.state == "restarting" or one.restarts > known:
            # One that was started again has no exit code any more.
            code = "" if one.running else f" (exit code {one.exit_code})"
            raise self._failed(one.service, f"ended while starting{code}")
        if one.health == "unhealthy":
            raise self._failed(one.service, "is unhealthy")

    def _failed(self, service: str, what: str) -> Problem:
        lines = log_lines(self._places, service, LOG_LINES)
        told = "\n    ".join([f"{service} {what}. Its last lines:", *lines])
        return Problem(told, MEND.format(service=service))

    def _last_line(self, service: str) -> str:
        return "".join(log_lines(self._places, service, 1))


def log_lines(places: Places, service: str, lines: int) -> list[str]:
    """The last lines that a service wrote; none if it wrote nothing."""
    told = docker.tried(
        places, "compose", "logs", "--no-log-prefix", "--no-color", "--tail", str(lines), service
    )
    return [line.rstrip() for line in CONTROL.sub("", told.out).splitlines() if line.strip()]
