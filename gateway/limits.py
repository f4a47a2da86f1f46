"""How much one key may do at once. A slot is a lease: given in one step, returned exactly once.

Rates and budgets are stored with the key but not judged here yet; `reserve` is the one place where
they will be.
"""

from gateway.errors import RateLimitExceeded
from gateway.keys import Key
from gateway.metrics import Metrics
from gateway.settings.sections import DefaultLimits

PARALLEL_RETRY_SECONDS = 1


class Lease:
    """One parallel slot of one key."""

    __slots__ = ("_key_id", "_running")

    def __init__(self, running: dict[str, int], key_id: str) -> None:
        self._running: dict[str, int] | None = running
        self._key_id = key_id
        running[key_id] = running.get(key_id, 0) + 1

    def release(self) -> None:
        """Give the slot back; a second call does nothing."""
        running, self._running = self._running, None
        if running is None:
            return
        running[self._key_id] -= 1
        if not running[self._key_id]:
            del running[self._key_id]


class Limits:
    """The open slots of all keys. Lives as long as the process: a reload leaves leases alone."""

    def __init__(self, metrics: Metrics) -> None:
        self._running: dict[str, int] = {}
        self._metrics = metrics

    def reserve(self, key: Key, defaults: DefaultLimits) -> Lease:
        """A slot for one call of this key. Raises RateLimitExceeded if all are taken; that costs nothing."""
        limit = defaults.max_parallel if key.max_parallel is None else key.max_parallel
        if isinstance(limit, int) and self._running.get(key.id, 0) >= limit:
            self._metrics.limited.labels(key.id, "max_parallel").inc()
            raise RateLimitExceeded(
                f"Your key may have {limit} call{'s' * (limit != 1)} running at once (max_parallel), "
                "and as many are. Wait until one has ended.",
                retry_after=PARALLEL_RETRY_SECONDS,
            )
        return Lease(self._running, key.id)

    def open_slots(self) -> int:
        """How many leases are held now; 0 at rest."""
        return sum(self._running.values())
