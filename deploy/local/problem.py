"""What stops a local run: one line that says what is wrong and how to mend it."""


class Problem(Exception):
    """The message is one line for the operator, the mend included; it ends the command with exit code 1."""
