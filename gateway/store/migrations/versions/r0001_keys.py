"""Keys, their secrets, their changes, and the gateway's own secret."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the tables. A migration names its columns itself: the schema of today changes, it does not."""
    _create_keys()
    op.create_table(
        "key_secrets",
        sa.Column("sha256", sa.LargeBinary(32), primary_key=True),
        sa.Column("key_id", sa.String(12), sa.ForeignKey("keys.id"), nullable=False, index=True),
        sa.Column("valid_until", sa.DateTime),
    )
    op.create_table(
        "key_changes",
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("key_id", sa.String(12), sa.ForeignKey("keys.id"), nullable=False, unique=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )


def _create_keys() -> None:
    limits = ("rpm", "tpm", "max_parallel", "tokens_per_day", "tokens_per_month")
    op.create_table(
        "keys",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        *(sa.Column(limit, sa.BigInteger) for limit in limits),
        sa.Column("models", sa.JSON),
        sa.Column("priority", sa.String, nullable=False),
        sa.Column("weight", sa.Float, nullable=False),
        sa.Column("cache_group", sa.String, nullable=False),
        sa.Column("expires_at", sa.DateTime),
        *(sa.Column(name, sa.JSON, nullable=False) for name in ("defaults", "force", "metadata")),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("last_used_at", sa.DateTime),
        sa.Column("revoked_at", sa.DateTime),
    )
