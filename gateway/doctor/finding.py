"""One thing that was looked at, and how evidence says that it is not to be had."""

from dataclasses import dataclass
from typing import Literal, TypeVar

Severity = Literal["error", "warning", "hint", "skipped", "ok"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "hint", "skipped", "ok")  # the order of a report

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """`title` says what is, `evidence` the figures seen, `mend` what can be pasted; each is one line."""

    check: str
    severity: Severity
    title: str
    evidence: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Unseen:
    """Stands in the place of evidence that is not to be had: why, and what would bring it."""

    why: str
    mend: str = ""


NOT_ASKED = Unseen("it was not asked for")


class NotLookedError(Exception):
    """A judge lacks evidence; whoever called it reports that instead of a finding."""

    def __init__(self, unseen: Unseen) -> None:
        super().__init__(unseen.why)
        self.unseen = unseen


def seen(evidence: T | Unseen) -> T:
    """The evidence itself. Raises NotLookedError where there is none."""
    if isinstance(evidence, Unseen):
        raise NotLookedError(evidence)
    return evidence
