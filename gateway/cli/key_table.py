"""The table of `gateway keys list`: one line a key, what is unset left out."""

from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.keys import Key
from gateway.keys.times import as_text, now

_LIMITS = ("rpm", "tpm", "max_parallel", "tokens_per_day", "tokens_per_month")
_COLUMNS = ("id", "name", "state", "limits", "models", "priority", "last used", "expires")
_WIDTH_OFF_TERMINAL = 240  # a pipe has no width: nothing is cut for it


def print_table(found: list[Key]) -> None:
    """Prints the keys on stdout."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OFF_TERMINAL)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    present = now()
    for key in found:
        # As Text: a name like "[red]" is a name and no markup.
        table.add_row(*(Text(cell) for cell in _cells(key, present)))
    console.print(table)


def _cells(key: Key, present: datetime) -> tuple[str, ...]:
    return (
        key.id,
        key.name,
        _state(key, present),
        " ".join(f"{name}={getattr(key, name)}" for name in _LIMITS if getattr(key, name) is not None),
        "all" if key.models is None else ",".join(key.models),
        key.priority,
        as_text(key.last_used_at) or "never",
        as_text(key.expires_at) or "never",
    )


def _state(key: Key, present: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.has_expired(present) else "active"
