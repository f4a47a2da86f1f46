"""Progress of long steps: a spinner with the time on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status

PLAIN_INTERVAL_SECONDS = 20


def console() -> Console:
    """Where progress goes: standard error, so that standard output holds results alone."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass
class Step:
    """A step under way: `note` shows what it does just now."""

    title: str
    out: Console
    status: Status | None
    started: float = field(default_factory=time.monotonic)
    last_line: float = field(default_factory=time.monotonic)

    @property
    def elapsed_seconds(self) -> int:
        """Whole seconds since the step began."""
        return int(time.monotonic() - self.started)

    def note(self, detail: str) -> None:
        """Shows a detail and the time so far; off a terminal at most one line in 20 seconds."""
        text = f"{self.title} ({self.elapsed_seconds} s) {escape(detail[:80])}".rstrip()
        if self.status is not None:
            self.status.update(text)
        elif time.monotonic() - self.last_line >= PLAIN_INTERVAL_SECONDS:
            self.last_line = time.monotonic()
            self.out.print(f"  … {text}")


@contextmanager
def step(title: str, out: Console | None = None) -> Iterator[Step]:
    """Announces a long step, shows that it lives, and says how long it took once it has succeeded."""
    out = out or console()
    if out.is_terminal:
        with out.status(title) as status:
            running = Step(title, out, status)
            yield running
    else:
        out.print(f"  {title} …")
        running = Step(title, out, None)
        yield running
    out.print(f"  [green]✓[/green] {title} ({running.elapsed_seconds} s)")
