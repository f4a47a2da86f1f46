"""Days and months in the operator's time zone: which one it is, and when the next begins."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo

DAY_SECONDS = 86_400.0

Next = Callable[[date], tuple[date, date]]


def day_of(today: date) -> tuple[date, date]:
    """The first day of this day and of the next."""
    return today, today + timedelta(days=1)


def month_of(today: date) -> tuple[date, date]:
    """The first day of this month and of the next."""
    first = today.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


class Window:
    """The running day or month. `number` grows by one when another begins; times are Unix seconds.

    It never goes back to a day that is over: a clock that is set back by less than a day changes nothing,
    or a budget would be spent twice. One that is set back further was wrong before, and the window is
    found anew; the number stays, so what is spent stays spent.
    """

    __slots__ = ("_turn", "ends_at", "holds_from", "number", "zone")

    def __init__(self, turn: Next, zone: tzinfo, now: float) -> None:
        self._turn = turn
        self.number = 0
        self.begin(zone, now)

    def begin(self, zone: tzinfo, now: float) -> None:
        """Start over, in this zone: nothing that was counted before counts."""
        self.zone = zone
        self.number += 1
        self._find(now)

    def at(self, now: float) -> int:
        """The number of the window now."""
        if now >= self.ends_at:
            self.number += 1
            self._find(now)
        elif now < self.holds_from:
            self._find(now)
        return self.number

    def _find(self, now: float) -> None:
        first, following = self._turn(datetime.fromtimestamp(now, self.zone).date())
        self.holds_from, self.ends_at = self._midnight(first) - DAY_SECONDS, self._midnight(following)

    def _midnight(self, day: date) -> float:
        # Where clocks go forward at midnight there is no 00:00; read with the offset before, it is the very
        # moment at which they do. Where it comes twice, the first counts.
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp()
