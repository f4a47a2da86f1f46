"""What a gateway has booked: the rows of its usage database, and the sums that its operator is told."""

import sqlite3
from contextlib import closing
from typing import Any

from tests.running import Gateway

Row = dict[str, Any]
SUMMED = (
    "requests", "errors", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens",
    "estimated_tokens",
)  # fmt: skip


def database(gateway: Gateway) -> sqlite3.Connection:
    """The database as any reader may open it beside the running server."""
    return sqlite3.connect(f"file:{gateway.data_dir / 'usage.db'}?mode=ro", uri=True, timeout=60)


def rows(gateway: Gateway, key_id: str | None = None) -> list[Row]:
    """The rows of one key, or all, as they were written."""
    with closing(database(gateway)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("SELECT * FROM usage_rows ORDER BY ended_ns").fetchall()
    return [dict(row) for row in found if key_id in (None, row["key"])]


def intact(gateway: Gateway) -> bool:
    """Whether SQLite finds nothing wrong with the file."""
    with closing(database(gateway)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def sums(gateway: Gateway, key_id: str, by: str = "key") -> Row:
    """What the operator is told of one key: all zero if there is nothing yet."""
    answer = await gateway.admin("GET", "/admin/usage", params={"by": by, "key": key_id})
    assert answer.status_code == 200, answer.text
    found = [row for row in answer.json() if row["key"] == key_id]
    return found[0] if found else dict.fromkeys(SUMMED, 0)
