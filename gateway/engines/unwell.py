"""What is found when an engine is looked at and cannot answer: for the operator, not for callers."""


class Unwell(Exception):  # it is what the probe finds, not what goes wrong in it
    """The engine cannot answer now; the text says why, to the operator.

    `starting` says whether time alone may mend it: nobody answers there yet, or what answers says 503.
    """

    def __init__(self, why: str, *, starting: bool = False) -> None:
        super().__init__(why)
        self.starting = starting
