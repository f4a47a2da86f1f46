"""The tables of the key database, and the column types that keep their meaning in Python.

How the tables came to be is in `migrations`; a change here needs a new revision there.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)
from sqlalchemy.types import TypeDecorator

from gateway.errors import KeyStoreUnavailable
from gateway.store.kind import Kind

REVISION = "0001"
"""The revision that this code reads and writes."""

_UNLIMITED = -1  # no limit is below 1, so that a plain integer column holds all three meanings


class Limit(TypeDecorator[int | Literal["unlimited"]]):
    """A limit of 1 or more, "unlimited", or null: the default limit applies."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | str | None, dialect: Dialect) -> int | None:  # noqa: ARG002  the base's signature
        """What the column holds."""
        return _UNLIMITED if isinstance(value, str) else value

    def process_result_value(
        self,
        value: int | None,
        dialect: Dialect,  # noqa: ARG002  the base's signature
    ) -> int | Literal["unlimited"] | None:
        """What it means."""
        return "unlimited" if value == _UNLIMITED else value


class Instant(TypeDecorator[datetime]):
    """A moment, aware and in UTC; SQLite itself forgets the zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  the base's signature
        """The moment in UTC, without its zone."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  the base's signature
        """The moment with its zone."""
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()

keys = Table(
    "keys",
    metadata,
    Column("id", String(12), primary_key=True),
    Column("name", String, nullable=False),
    Column("rpm", Limit),
    Column("tpm", Limit),
    Column("max_parallel", Limit),
    Column("tokens_per_day", Limit),
    Column("tokens_per_month", Limit),
    Column("models", JSON(none_as_null=True)),
    Column("priority", String, nullable=False),
    Column("weight", Float, nullable=False),
    Column("cache_group", String, nullable=False),
    Column("expires_at", Instant),
    Column("defaults", JSON, nullable=False),
    Column("force", JSON, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
)

key_secrets = Table(
    "key_secrets",
    metadata,
    Column("sha256", LargeBinary(32), primary_key=True),
    Column("key_id", String(12), ForeignKey("keys.id"), nullable=False, index=True),
    Column("valid_until", Instant),
)
"""What opens a key: one secret, and for the overlap of a rotation the one before it."""

key_changes = Table(
    "key_changes",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=True),
    Column("key_id", String(12), ForeignKey("keys.id"), nullable=False, unique=True),
    sqlite_autoincrement=True,  # a version is never used twice, also after its row was replaced
)
"""The newest change of each key. Versions grow; readers ask for those above the last one they saw."""

secrets = Table(
    "secrets",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
    Column("created_at", Instant, nullable=False),
)
"""What the gateway itself made once and must keep."""

KEYS = Kind(
    file_name="gateway.db",
    called="key database",
    unavailable=KeyStoreUnavailable,
    revision=REVISION,
    metadata=metadata,
    migrations=Path(__file__).parent / "migrations",
    first="create a first key",
)
