"""`gateway usage`: who has used how much, from the same database as a running server."""

import asyncio
import csv
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from gateway.cli import key_options as option
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from gateway.store import Energy
    from gateway.usage.question import Question

CONFIG_FILE = "gateway.toml"

By = Annotated[str, typer.Option("--by", metavar="key|model|route|day|hour", help="What to sum up by.")]
Since = Annotated[
    str, typer.Option("--since", metavar="7d|DATE|TIME", help="How long ago, a date, or an RFC 3339 time.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="7d|DATE|TIME", help="Before it; default: now.")
]
Key = Annotated[str | None, typer.Option("--key", metavar="ID", help="Of one key alone.")]
Model = Annotated[str | None, typer.Option("--model", metavar="ID", help="Of one model alone.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", envvar="GATEWAY_DATA_DIR", help="Where usage.db is; default: as for the server."
    ),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found. `names` are those of the keys by id, None if the key database cannot be read."""

    question: "Question"
    zone: "ZoneInfo"
    rows: list[dict[str, Any]]
    names: Mapping[str, str] | None
    energy: "Energy | None"


def usage(
    by: By = "key",
    since: Since = "7d",
    until: Until = None,
    key: Key = None,
    model: Model = None,
    as_csv: AsCsv = False,
    as_json: option.AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show what was used: requests and tokens by key, model, route, day or hour.

    Works while the server runs; what ended within the last second may not be in it yet.

    Days and hours are those of the setting budgets.timezone.
    """
    if as_csv and as_json:
        typer.echo("gateway: choose one of --csv and --json.", err=True)
        raise typer.Exit(1)
    given = {"by": by, "since": since, "until": until, "key": key, "model": model}
    try:
        answer = _find({name: text for name, text in given.items() if text is not None}, data_dir)
    except GatewayError as error:
        option_told = "--" if error.param else ""  # a message about a parameter begins with its name
        typer.echo(f"gateway: {option_told}{error.message}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(orjson.dumps(answer.rows, option=orjson.OPT_INDENT_2).decode())
    elif as_csv:
        _print_csv(answer)
    else:
        from gateway.cli.usage_table import print_table

        print_table(answer)
    if not answer.rows:
        _tell_why(answer)


def _find(given: Mapping[str, str], data_dir: Path | None) -> Answer:
    from zoneinfo import ZoneInfo

    from gateway.cli.configuration import loaded
    from gateway.keys import times
    from gateway.usage import question

    settings = loaded(to_serve=False).settings
    beside = (settings.data_dir if data_dir is None else data_dir.expanduser()) / CONFIG_FILE
    if settings.file is None and beside.is_file():  # the local mode keeps its file there
        settings = loaded(beside, to_serve=False).settings
    zone = ZoneInfo(settings.budgets.timezone)
    asked = question.read(given, zone, times.now())
    return asyncio.run(_ask(asked, zone, beside.parent))


async def _ask(asked: "Question", zone: "ZoneInfo", data_dir: Path) -> Answer:
    from gateway.store import UsageStore

    async with UsageStore(data_dir, "existing", zone=zone) as store:
        rows = await asked.answer(store)
        whole = asked.only.key is None and asked.only.model is None
        energy = await store.energy(asked.period) if whole else None
    return Answer(asked, zone, rows, await _names(data_dir), energy)


async def _names(data_dir: Path) -> dict[str, str] | None:
    from gateway.keys import Keyring
    from gateway.store import Store

    try:
        async with Store(data_dir, "existing") as store:
            return {key.id: key.name for key in await Keyring(store).list_all()}
    except GatewayError:  # ids say enough: what was used is not in that database
        return None


def _print_csv(answer: Answer) -> None:
    from gateway.store import Sums

    writer = csv.DictWriter(sys.stdout, [answer.question.by, *Sums._fields], lineterminator="\n")
    writer.writeheader()
    writer.writerows(answer.rows)


def _tell_why(answer: Answer) -> None:
    """On stderr, what may be the reason that nothing was found."""
    key, model = answer.question.only.key, answer.question.only.model
    if key is not None and answer.names is not None and key not in answer.names:
        typer.echo(f"There is no key {key}: gateway keys list shows the ids.", err=True)
    elif model is not None:
        typer.echo(
            f"No call of that period was for a model {model!r}: gateway usage --by model shows the ids "
            "(an alias or a variant is counted under its model's).",
            err=True,
        )
