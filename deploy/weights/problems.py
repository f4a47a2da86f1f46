"""What stops a download: one line that names the thing and its mend, and the exit code that it ends with."""

from typing import ClassVar


class Problem(Exception):
    """The operator has to mend something first; the message is one line and says what."""

    exit_code: ClassVar[int] = 1


class Unreachable(Problem):
    """The hub did not answer, or not to the end: the same command again goes on where this one stopped."""

    exit_code: ClassVar[int] = 75  # EX_TEMPFAIL of sysexits.h
