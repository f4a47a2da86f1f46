"""A change of models that went wrong, with Docker or without: the model before again, and what is told."""

import errno
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from rich.markup import escape

from deploy.local.problem import Problem
from deploy.local.progress import console
from gateway.doctor.evidence import EngineLog
from gateway.doctor.finding import Unseen
from gateway.doctor.running import engine_log


@dataclass(frozen=True)
class Change:
    """Both models as an operator knows them; what mends a way back that is cut off; what says more."""

    new: str
    old: str
    half_done: str
    more: str = ""


def take(change: Change, trouble: BaseException, log: Callable[[], str], restart: Callable[[], None]) -> None:
    """Restarts the old model, whatever went wrong, and tells what it was.

    `log` gives the new engine's last words. Raises Problem if the trouble was the model's, or the old one
    does not come up either; returns otherwise, for the caller to raise what interrupted it.
    """
    known = isinstance(trouble, Problem | httpx.HTTPError | OSError)
    what = trouble.what if isinstance(trouble, Problem) else said(trouble)
    why = "\n  - ".join([what, *(why_it_died(log()) if known else [])])
    failed = "did not come up" if known else f"was not waited for ({what})"
    console().print(
        f"[red]✗[/red] {escape(f'{change.new} {failed}. Going back to {change.old} …')} (Ctrl-C now would "
        f"leave it half done: then {change.half_done}.)"
    )
    try:
        restart()
    except (Problem, httpx.HTTPError, OSError) as second:
        raise Problem(
            f"neither {change.new} nor, again, {change.old} came up. The new one: {why}\nThe old one: "
            f"{said(second)}"
        ) from trouble
    if known:
        raise Problem(
            f"{change.new} did not come up, and {change.old} serves again. {why}{change.more}"
        ) from trouble
    console().print(f"  {escape(change.old)} serves again.")


def why_it_died(log: str) -> list[str]:
    """What `gateway doctor` makes of an engine's last words: one line with its mend for each known error."""
    found = engine_log.findings(EngineLog("its log", log), Unseen("it was not asked for"))
    return [f"{one.title}: {one.mend}" for one in found if one.severity == "error"]


def said(trouble: BaseException) -> str:
    """What went wrong with a change of models, in one sentence at least."""
    match trouble:
        case KeyboardInterrupt():
            return "interrupted"
        case OSError(errno=errno.ENOSPC):
            where = f" ({trouble.filename})" if trouble.filename else ""
            return f"The disk is full{where}: free some space."
        case Problem():
            return str(trouble)
        case _:
            return f"{type(trouble).__name__}: {trouble}."
