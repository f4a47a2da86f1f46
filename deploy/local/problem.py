"""What stops a local run: one line that says what is wrong and how to mend it."""


class Problem(Exception):
    """The message is one line for the operator, the mend included; it ends the command with exit code 1.

    Where the message quotes more lines, `mend` is the last one; `what` is all but that, for a command that
    mends by itself.
    """

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(f"{what}\n    {mend}" if mend else what)
        self.what = what
