"""The limits that hold for one key: its own, or the operator's defaults."""

from typing import NamedTuple, Self

from gateway.keys import Key
from gateway.keys.key import Limit
from gateway.settings.sections import DefaultLimits


class Terms(NamedTuple):
    """One key's limits; None: no limit."""

    rpm: int | None
    tpm: int | None
    max_parallel: int | None
    tokens_per_day: int | None
    tokens_per_month: int | None

    @classmethod
    def of(cls, key: Key, defaults: DefaultLimits) -> Self:
        """Each limit of the key's own; where it has none, the default."""
        return cls(
            _limit(key.rpm, defaults.rpm),
            _limit(key.tpm, defaults.tpm),
            _limit(key.max_parallel, defaults.max_parallel),
            _limit(key.tokens_per_day, defaults.tokens_per_day),
            _limit(key.tokens_per_month, defaults.tokens_per_month),
        )


NO_TERMS = Terms(None, None, None, None, None)


def _limit(own: Limit, default: int | None) -> int | None:
    if own is None:
        return default
    return own if isinstance(own, int) else None
