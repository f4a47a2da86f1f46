"""The tables of the usage database. How they came to be is in `usage_migrations`.

A row's id is the time at which its call ended, so that the table itself is in the order of time: a
period is found, and what is too old is deleted, without an index that would cost room and writing.
Both tables are written in one transaction; sums of hours are never read off the rows.
"""

from pathlib import Path

from sqlalchemy import Boolean, Column, Float, Integer, MetaData, String, Table

from gateway.errors import UsageStoreUnavailable
from gateway.store.kind import Kind

metadata = MetaData()

rows = Table(
    "usage_rows",
    metadata,
    Column("ended_ns", Integer, primary_key=True),  # since 1970 in UTC
    Column("request_id", String, nullable=False),
    Column("caller_request_id", String),
    Column("key", String(12), nullable=False),
    Column("model", String, nullable=False),
    Column("route", String, nullable=False),
    Column("status", Integer, nullable=False),
    Column("reason", String, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("estimated", Boolean, nullable=False),
    Column("queue_seconds", Float, nullable=False),
    Column("ttft_seconds", Float),
    Column("duration_seconds", Float, nullable=False),
)
"""A request each; `requests` is more than 1 where a flood of refusals was folded into one row."""

hours = Table(
    "usage_hours",
    metadata,
    Column("begins_seconds", Integer, primary_key=True),  # since 1970 in UTC
    Column("key", String(12), primary_key=True),
    Column("model", String, primary_key=True),
    Column("route", String, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("estimated_tokens", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""Sums by hour, or by the part of one that a zone with half-hour offsets needs (see `usage_rows`)."""

energy = Table(
    "energy_hours",
    metadata,
    Column("begins_seconds", Integer, primary_key=True),  # since 1970 in UTC, a whole hour
    Column("joules", Float, nullable=False),
)
"""What the box's GPUs consumed, where that is measured."""

USAGE = Kind(
    file_name="usage.db",
    called="usage database",
    unavailable=UsageStoreUnavailable,
    revision="0001",
    metadata=metadata,
    migrations=Path(__file__).parent / "usage_migrations",
    first="start the server (gateway serve), which makes it",
    # A commit waits for no disk: a power cut may cost the last seconds, a crash of the process nothing.
    pragmas=("PRAGMA synchronous = NORMAL",),
    is_busy=True,
)
