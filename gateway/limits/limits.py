"""The limits of all keys: one atomic decision a call, and what it took.

Nothing here waits, so that nothing comes between the question and the taking; the interface is
asynchronous for a second implementation that shares its state with other processes.
"""

from collections.abc import Iterator, Mapping
from datetime import tzinfo

from gateway.errors import GatewayError, Headers
from gateway.keys import Key
from gateway.limits import headers
from gateway.limits.account import Account
from gateway.limits.budget import Budget, Remembered
from gateway.limits.clocks import Clocks
from gateway.limits.reservation import Reservation
from gateway.limits.wording import Refusal
from gateway.metrics import Metrics
from gateway.settings.sections import DefaultLimits


class Limits:
    """What all keys have used. Lives as long as the process: a reload leaves reservations alone."""

    def __init__(self, metrics: Metrics, clocks: Clocks | None = None) -> None:
        self._clocks = clocks or Clocks()
        self._limited = metrics.limited
        self._accounts: dict[str, Account] = {}
        today, this_month = self._clocks.windows()
        self._day, self._month = Remembered(today), Remembered(this_month)
        metrics.budgets.used_ratios = self._used_ratios
        metrics.open_slots.set_function(self.open_slots)
        metrics.reserved_tokens.set_function(self.reserved_tokens)

    async def reserve(
        self, key: Key, defaults: DefaultLimits, tokens: int, *, smaller: str = "Ask for less."
    ) -> Reservation:
        """One request, so many tokens and a slot for one call of this key, all or none.

        `smaller` tells its caller how such a call comes to need fewer tokens. Raises RateLimitExceeded or
        InsufficientQuota; that costs nothing.
        """
        now_ns = self._clocks.ticks_ns()
        account = self._account(key, defaults, now_ns)
        refusal = account.refusal(tokens, smaller, now_ns)
        if refusal is not None:
            raise self._counted(key, refusal)
        account.put_away = None
        return Reservation(account, tokens)

    async def spend_request(self, key: Key, defaults: DefaultLimits) -> None:
        """One request, of a call that is refused for what it says. Raises RateLimitExceeded without one."""
        now_ns = self._clocks.ticks_ns()
        account = self._account(key, defaults, now_ns)
        refusal = account.no_request_left(now_ns)
        if refusal is not None:
            raise self._counted(key, refusal)
        if account.requests is not None:
            account.requests.spend(1, now_ns)

    def headers(self, key: Key, defaults: DefaultLimits) -> Headers:
        """The `x-ratelimit-*` headers of the limits that this key has, as they stand now."""
        now_ns = self._clocks.ticks_ns()
        account = self._accounts.get(key.id) or Account(self._clocks, Budget(0), Budget(0))
        account.adopt(key, defaults, now_ns)
        return headers.of(account.requests, account.tokens, now_ns, runs=account.running > 0)

    def begin(self, zone: tzinfo, day: Mapping[str, int], month: Mapping[str, int]) -> None:
        """Days and months are those of this zone, and so many tokens are spent in them, by the key's id."""
        self._clocks.begin(zone)
        today, this_month = self._clocks.windows()
        self._day.begin(today, day)
        self._month.begin(this_month, month)
        for key_id, account in self._accounts.items():
            account.day.begin(today, self._day.take(key_id, today))
            account.month.begin(this_month, self._month.take(key_id, this_month))

    def forget(self, key_id: str) -> None:
        """The key was revoked or has expired: nothing is kept once its last call has ended.

        But for what it has spent, until the day and the month are over: it may be given more time.
        """
        account = self._accounts.get(key_id)
        if account is None:
            return
        if account.running:
            account.put_away = lambda: self._put_away(key_id)
        else:
            self._put_away(key_id)

    def open_slots(self) -> int:
        """How many reservations are held now; 0 at rest."""
        return sum(account.running for account in self._accounts.values())

    def reserved_tokens(self) -> int:
        """How many tokens are reserved by calls that are not settled; 0 at rest."""
        return sum(account.reserved for account in self._accounts.values())

    def _account(self, key: Key, defaults: DefaultLimits, now_ns: int) -> Account:
        account = self._accounts.get(key.id)
        if account is None:
            account = self._accounts[key.id] = self._open(key.id)
        account.adopt(key, defaults, now_ns)
        return account

    def _open(self, key_id: str) -> Account:
        today, this_month = self._clocks.windows()
        return Account(
            self._clocks,
            Budget(today, self._day.take(key_id, today)),
            Budget(this_month, self._month.take(key_id, this_month)),
        )

    def _put_away(self, key_id: str) -> None:
        account = self._accounts.pop(key_id)
        today, this_month = self._clocks.windows()
        self._day.put(key_id, account.day, today)
        self._month.put(key_id, account.month, this_month)

    def _counted(self, key: Key, refusal: Refusal) -> GatewayError:
        self._limited.labels(key.id, refusal.limit).inc()
        return refusal.error

    def _used_ratios(self) -> Iterator[tuple[str, str, float]]:
        windows = self._clocks.windows()
        for key_id, account in self._accounts.items():
            if account.put_away is None:
                for limit, ratio in account.used_ratios(*windows):
                    yield key_id, limit, ratio
