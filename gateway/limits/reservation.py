"""What one call has taken: a slot, a request, tokens; settled or given back exactly once."""

from gateway.limits.account import Account


class Reservation:
    """What one call has taken: a slot, a request, tokens. `settle` or `refund`, then `close`, on every path.

    Making one takes it, whether or not it is there: ask before.
    """

    __slots__ = (
        "_account", "_held_of_day", "_held_of_month", "_open", "_request", "_reserved", "_settled", "_tokens",
    )  # fmt: skip

    def __init__(self, account: Account, tokens: int) -> None:
        self._account = account
        requests, bucket = account.requests, account.tokens
        self._request = None if requests is None else requests.take(1)
        self._tokens = None if bucket is None else bucket.take(tokens)
        self._held_of_day, self._held_of_month = account.hold(tokens)
        self._reserved = tokens
        self._settled = False
        self._open = True
        account.reserved += tokens
        account.running += 1

    def settle(self, tokens: int) -> None:
        """It used so many tokens, and the request counts. Only the first of `settle` and `refund` acts."""
        if not self._settled:
            self._settle(1, tokens)

    def refund(self, *, request: bool) -> None:
        """The call has used no tokens; with `request` it does not count as one either."""
        if not self._settled:
            self._settle(0 if request else 1, 0)

    def close(self) -> None:
        """Give the slot back, and what was neither settled nor refunded; a second call does nothing."""
        if not self._settled:
            self._settle(0, 0)
        if not self._open:
            return
        self._open = False
        account = self._account
        account.running -= 1
        if not account.running and account.put_away is not None:
            account.put_away()

    def _settle(self, requests: int, tokens: int) -> None:
        self._settled = True
        account = self._account
        now_ns = account.clocks.ticks_ns()
        account.reserved -= self._reserved
        account.day.held -= self._held_of_day
        account.month.held -= self._held_of_month
        if self._request is not None:
            self._request.settle(requests, now_ns)
        if self._tokens is not None:
            self._tokens.settle(tokens, now_ns)
        if tokens:
            account.spend(tokens)
