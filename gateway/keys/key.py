"""What a key is: who calls, what it may use, and how much."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Literal, Self

from gateway.keys.times import as_text
from gateway.store import Row

UNLIMITED: Final = "unlimited"
Limit = int | Literal["unlimited"] | None
"""A limit of 1 or more; None: the default limit applies; UNLIMITED: not even that."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key, without its secret. `models` None: all; times are in UTC.

    Two are equal if nothing that an operator sets is different: when it was last used does not count.
    """

    id: str
    name: str
    rpm: Limit
    tpm: Limit
    max_parallel: Limit
    tokens_per_day: Limit
    tokens_per_month: Limit
    models: tuple[str, ...] | None
    priority: Literal["interactive", "batch"]
    weight: float
    cache_group: str
    expires_at: datetime | None
    defaults: dict[str, Any] = field(hash=False)
    force: dict[str, Any] = field(hash=False)
    metadata: dict[str, Any] = field(hash=False)
    created_at: datetime
    last_used_at: datetime | None = field(compare=False)
    revoked_at: datetime | None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The key that a row of the database holds."""
        models = row["models"]
        return cls(**{**row, "models": None if models is None else tuple(models)})

    def as_json(self) -> dict[str, Any]:
        """The key object of the admin API and of `--json`: these names, times in RFC 3339."""
        out = {name: getattr(self, name) for name in (each.name for each in fields(self))}
        out["models"] = None if self.models is None else list(self.models)
        for name in ("expires_at", "created_at", "last_used_at", "revoked_at"):
            out[name] = as_text(out[name])
        return out

    def has_expired(self, now: datetime) -> bool:
        """Whether its time is over. A revoked key may or may not have expired."""
        return self.expires_at is not None and self.expires_at <= now
