"""Services under a real supervisord, in a checkout of their own."""

import json
import sys
from pathlib import Path
from typing import Any

from deploy.local import session, supervision
from deploy.local.places import Places
from deploy.local.progress import step
from deploy.local.services import Service
from deploy.local.table import Process
from deploy.local.watch import Watch
from tests.local import fake_service
from tests.local.waiting import wait_until

EARLIER = "written by an earlier run\n"
NAMES = ("engine", "caddy", "gateway")


class Stack:
    """Services, three fake ones or others, under a real supervisord, in a checkout of their own."""

    def __init__(self, checkout: Path, others: list[Service] | None = None) -> None:
        self.places = Places(checkout)
        for folder in (self.places.run, self.places.logs):
            folder.mkdir(parents=True)
        self.services = others or [self._service(name, order) for order, name in enumerate(NAMES, start=1)]
        self.leader = 0
        for service in self.services:
            supervision.log_file(self.places, service.name).write_text(EARLIER)
        self.watch = Watch(self.places)

    def _service(self, name: str, order: int) -> Service:
        argv = (sys.executable, fake_service.__file__, name, str(self.places.data))
        return Service(name, argv, {"SETTING": 'a "quoted" 100% value'}, stop_seconds=60, order=order)

    def start(self) -> None:
        """Starts supervisord."""
        supervision.start(self.places, self.services)
        self.leader = session.running(self.places.pid_file, self.places.checkout) or 0

    def what_is(self, name: str) -> dict[str, Any]:
        """What a service has written of itself, once it has."""
        file = self.places.data / f"{name}.json"
        wait_until(file.exists)
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def left(self) -> list[Process]:
        """Its processes that are still there."""
        return session.members(self.leader, self.places.checkout)

    def stop(self) -> None:
        """Stops it as `make down` does."""
        with step("Stopping") as progress:
            supervision.stop(self.places, progress)
