"""How far a download is: gigabytes, rate and time left, in lines, or in one that changes on a terminal."""

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

GB = 1e9
WINDOW_SECONDS = 30.0  # of which the rate is the mean: a download rarely keeps its pace


def gigabytes(count: float) -> str:
    """Bytes as people and disks count them: `35.2 GB`, or MB where it is little."""
    return f"{count / GB:.1f} GB" if count >= GB / 10 else f"{count / 1e6:.1f} MB"


def duration(seconds: float) -> str:
    """Roughly: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass
class Progress:
    """Written on standard error; `done` looks on the disk how many of the `total` bytes are there."""

    total: int
    done: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    interactive: bool = field(default_factory=sys.stderr.isatty)
    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.seen.append((self.clock(), self.done()))

    def show(self) -> None:
        """One more line, or the one line anew."""
        print(f"\r\x1b[K  {self.line()}" if self.interactive else f"  {self.line()}",
              end="" if self.interactive else "\n", file=sys.stderr, flush=True)  # fmt: skip

    def close(self) -> None:
        """Leaves the last state to be read."""
        if self.interactive:
            print(file=sys.stderr)

    def line(self) -> str:
        """For example `12.3 GB of 35.2 GB, 110.0 MB/s, about 4 min left`."""
        now, done = self.clock(), self.done()
        self.seen.append((now, done))
        while now - self.seen[0][0] > WINDOW_SECONDS and len(self.seen) > 2:
            self.seen.popleft()
        since, before = self.seen[0]
        rate = (done - before) / (now - since) if now > since else 0.0
        left = (
            f", about {duration((self.total - done) / rate)} left" if rate > 0 and done < self.total else ""
        )
        return f"{gigabytes(done)} of {gigabytes(self.total)}, {rate / 1e6:.1f} MB/s{left}"
