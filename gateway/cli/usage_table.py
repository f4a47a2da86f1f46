"""The table of `gateway usage`: a line a group, a line of totals, and which period it is about."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli import energy
from gateway.cli.usage import Answer
from gateway.keys.times import now
from gateway.store import Sums

_TITLES = ("requests", "errors", "prompt", "cached", "completion", "reasoning", "estimated")
_MOST_WIDTH = 240  # a narrower terminal breaks lines: no figure and no name is cut for it


def print_table(answer: Answer) -> None:
    """Prints what was found on stdout."""
    console = Console(width=_MOST_WIDTH, highlight=False)
    if answer.rows:
        console.print(_table(answer))
    else:
        console.print("Nothing was used.")
    console.print(_period(answer), soft_wrap=True)
    if answer.energy is not None:
        console.print(energy.told(answer.energy), soft_wrap=True)


def _table(answer: Answer) -> Table:
    by = answer.question.by
    named = by == "key" and answer.names is not None
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_footer=True)
    sums = [[row[name] for name in Sums._fields] for row in answer.rows]
    totals = [sum(column) for column in zip(*sums, strict=True)]
    table.add_column(by, "total", no_wrap=True)
    if named:
        table.add_column("name")
    for title, total in zip(_TITLES, totals, strict=True):
        table.add_column(title, f"{total:,}", justify="right", no_wrap=True)
    for row, counts in zip(answer.rows, sums, strict=True):
        name = [(answer.names or {}).get(row[by], "")] if named else []
        table.add_row(*_texts([row[by], *name]), *_texts(f"{count:,}" for count in counts))
    return table


def _texts(cells: Iterable[str]) -> list[Text]:
    # As Text: a name like "[red]" is a name and no markup.
    return [Text(cell) for cell in cells]


def _period(answer: Answer) -> str:
    period = answer.question.period
    until = now() if period.until is None else period.until
    since, end = (_local(moment, answer) for moment in (period.since, until))
    return f"From {since} to {end} ({answer.zone.key}); cached is part of prompt, reasoning of completion."


def _local(moment: datetime, answer: Answer) -> str:
    with suppress(OverflowError):  # at the ends of the calendar a zone has no time for it
        moment = moment.astimezone(answer.zone)
    return f"{moment:%Y-%m-%d %H:%M}"
