"""A row for each request, their sums by hour, and the energy of each hour."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


def upgrade() -> None:
    """Creates the tables. A migration names its columns itself: the schema of today changes, it does not."""
    op.create_table(
        "usage_rows",
        sa.Column("ended_ns", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("caller_request_id", sa.String),
        sa.Column("key", sa.String(12), nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("route", sa.String, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in _TOKENS),
        sa.Column("estimated", sa.Boolean, nullable=False),
        sa.Column("queue_seconds", sa.Float, nullable=False),
        sa.Column("ttft_seconds", sa.Float),
        sa.Column("duration_seconds", sa.Float, nullable=False),
    )
    sums = ("requests", "errors", *_TOKENS, "estimated_tokens")
    op.create_table(
        "usage_hours",
        sa.Column("begins_seconds", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(12), primary_key=True),
        sa.Column("model", sa.String, primary_key=True),
        sa.Column("route", sa.String, primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in sums),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "energy_hours",
        sa.Column("begins_seconds", sa.Integer, primary_key=True),
        sa.Column("joules", sa.Float, nullable=False),
    )
