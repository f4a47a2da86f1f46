"""`gateway doctor`: what would fail after a start, what is set wrongly while it runs; each with its mend."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from gateway.doctor.checks import Stage
    from gateway.doctor.finding import Finding, Severity

STYLES: dict["Severity", str] = {
    "error": "bold red",
    "warning": "yellow",
    "hint": "cyan",
    "skipped": "dim",
    "ok": "green",
}
INDENT = " " * 9

Folder = Annotated[Path | None, typer.Option(help="The data folder. Default: that of the settings.")]
Ops = Annotated[str, typer.Option(metavar="URL", help="The ops listener. Default: that of the settings.")]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", metavar="URL", help="An engine; repeatable. Default: those of the settings."),
]
Prometheus = Annotated[str, typer.Option(metavar="URL", help="A Prometheus, for alerts and the last day.")]
Profile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file for `vllm serve --config`. Default: that of .env.")
]
Log = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The engine's log. Default: that of the stack here.")
]
Seconds = Annotated[float, typer.Option(min=0.0, max=600.0, help="Time between the two reads of counters.")]


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="An array of findings, the worst first.")] = False,
    before: Annotated[bool, typer.Option("--before", help="Only what would fail at a start.")] = False,
    running: Annotated[bool, typer.Option("--running", help="Only what runs.")] = False,
    data_dir: Folder = None,
    ops: Ops = "",
    engine: Engines = None,
    prometheus: Prometheus = "",
    profile: Profile = None,
    engine_log: Log = None,
    seconds: Seconds = 5.0,
) -> None:
    """Find what would fail after a start, and what is set wrongly while it runs; each with its mend.

    Exit code 1 if there is an error; warnings, hints and what could not be looked at leave it 0. It takes
    some seconds; where Docker, nvidia-smi or an address hang, about a minute, and it says which.
    """
    from gateway.doctor.checks import diagnose
    from gateway.doctor.look.gather import Wishes, gather
    from gateway.planner.parsers import of_name

    chosen: set[Stage] = set()
    chosen |= {"before"} if before or not running else set()
    chosen |= {"running"} if running or not before else set()
    wishes = Wishes(
        folder=Path(),
        data_dir=data_dir,
        ops=ops,
        engines=tuple(engine or ()),
        prometheus=prometheus,
        profile=profile,
        engine_log=engine_log,
        seconds=seconds,
        before="before" in chosen,
        running="running" in chosen,
        sizes=_published,
        parsers=of_name,
    )
    found = diagnose(gather(wishes, os.environ), frozenset(chosen))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found], indent=2, ensure_ascii=False))
    else:
        _print(found)
    raise typer.Exit(1 if any(finding.severity == "error" for finding in found) else 0)


def _published(model: str) -> int | None:
    """The size of a model that the planner knows: its room and the doctor's do not know each other."""
    from gateway.planner import catalogue

    entry = catalogue.find(model)
    return entry.weights.bytes if entry else None


def _print(found: Sequence["Finding"]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for line in _lines(found):
        # Whole, whatever the terminal's width: a mend that was wrapped could not be pasted.
        console.print(line, soft_wrap=True)


def _lines(found: Sequence["Finding"]) -> Iterator["Text"]:
    from rich.text import Text

    for finding in found:
        if finding.severity in {"ok", "skipped"}:
            continue
        head = (f"{finding.severity:<8} ", STYLES[finding.severity]), (f"{finding.check}: ", "bold")
        yield Text.assemble(*head, finding.title)
        if finding.evidence:
            yield Text(f"{INDENT}{finding.evidence}", "dim")
        if finding.mend:
            yield Text.assemble(INDENT, ("mend: ", "bold"), finding.mend)
    yield from _skipped([finding for finding in found if finding.severity == "skipped"])
    well = dict.fromkeys(finding.check for finding in found if finding.severity == "ok")
    if well:
        yield Text.assemble((f"{'ok':<8} ", STYLES["ok"]), ", ".join(well))
    yield Text(_summary(found))


def _skipped(found: Sequence["Finding"]) -> Iterator["Text"]:
    """One reason may keep the doctor from many things: each is said once."""
    from rich.text import Text

    whys: dict[tuple[str, str], dict[str, None]] = {}
    for finding in found:
        whys.setdefault((finding.evidence, finding.mend), {})[finding.check] = None
    for (why, mend), checks in whys.items():
        yield Text.assemble((f"{'skipped':<8} ", STYLES["skipped"]), f"{', '.join(checks)}: {why}")
        if mend:
            yield Text.assemble(INDENT, ("mend: ", "bold"), mend)


def _summary(found: Sequence["Finding"]) -> str:
    counts = {severity: sum(finding.severity == severity for finding in found) for severity in STYLES}
    said = f"{counts['error']} errors, {counts['warning']} warnings, {counts['hint']} hints"
    return f"{said}; {counts['ok']} ok, {counts['skipped']} not looked at"
