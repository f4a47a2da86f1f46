"""The books behind the limits: what each key has spent is read back at start, and when the zone changes."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from gateway.limits import Limits
from gateway.settings import Settings
from gateway.store import UsageStore
from gateway.usage import Ledger


@dataclass(frozen=True, slots=True)
class Books:
    """The usage database, who writes it, and the limits that count on it."""

    limits: Limits
    store: UsageStore
    ledger: Ledger

    async def begin(self, settings: Settings) -> None:
        """Let budgets go on where the books say they are. Raises what the store raises, changing nothing.

        What calls settle while the books are read, on a reload, is in them only afterwards: those tokens are
        missing from the budgets until the next start.
        """
        zone = ZoneInfo(settings.budgets.timezone)
        day = None
        while day != _midnight(zone):  # a day may begin while the books of the one before are read
            day = _midnight(zone)
            await self.ledger.flush()
            spent = await self.store.spent(day), await self.store.spent(day.replace(day=1))
        self.store.zone = zone
        self.limits.begin(zone, *spent)


def _midnight(zone: ZoneInfo) -> datetime:
    """When the running day began; where midnight comes twice, the first of them."""
    return datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
