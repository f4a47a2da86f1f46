"""The two clocks of limits: a steady one for rates, the calendar's for budgets."""

import time
from collections.abc import Callable
from datetime import UTC, tzinfo

from gateway.limits.window import Window, day_of, month_of


class Clocks:
    """`ticks_ns` are nanoseconds and only grow; `now` is in Unix seconds and may be set at any time."""

    __slots__ = ("day", "month", "now", "ticks_ns")

    def __init__(
        self, ticks_ns: Callable[[], int] = time.monotonic_ns, now: Callable[[], float] = time.time
    ) -> None:
        self.ticks_ns = ticks_ns
        self.now = now
        self.day = Window(day_of, UTC, now())
        self.month = Window(month_of, UTC, now())

    def begin(self, zone: tzinfo) -> None:
        """Days and months are those of this zone from now on, and nothing is spent in them."""
        now = self.now()
        self.day.begin(zone, now)
        self.month.begin(zone, now)

    def windows(self) -> tuple[int, int]:
        """The numbers of the running day and month."""
        now, day = self.now(), self.day
        if day.holds_from <= now < day.ends_at:  # then the month, found with it, holds too
            return day.number, self.month.number
        return day.at(now), self.month.at(now)
