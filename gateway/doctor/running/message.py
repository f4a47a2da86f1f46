"""A line of an engine's log that is known, and the mend for it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gateway.doctor.finding import Severity

Match = re.Match[str]


@dataclass(frozen=True)
class Message:
    """A line to look for. What is shown as evidence is what the pattern matches, nothing beside it.

    `echo`: it is written beside other errors too, or by a start that gets well: told only of a start that
    failed and has no better reason.
    """

    pattern: str
    severity: Severity
    title: str
    mend: str | Callable[[Match], str]
    echo: bool = False
