"""The databases: their files, their migrations, their statements. What a key or a token means is not here."""

from gateway.store.key_store import Store
from gateway.store.keys import Reader, Row, StoredKey, StoredSecret, Writer
from gateway.store.migrate import Opening
from gateway.store.usage_energy import Energy
from gateway.store.usage_rows import UsageRow
from gateway.store.usage_store import GROUPINGS, Grouping, UsageStore
from gateway.store.usage_sums import Only, Period, Sums

__all__ = [
    "GROUPINGS",
    "Energy",
    "Grouping",
    "Only",
    "Opening",
    "Period",
    "Reader",
    "Row",
    "Store",
    "StoredKey",
    "StoredSecret",
    "Sums",
    "UsageRow",
    "UsageStore",
    "Writer",
]
