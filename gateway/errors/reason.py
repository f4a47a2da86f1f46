"""What an exception comes down to, in words for operators."""


def reason_of(error: BaseException) -> str:
    """The innermost cause of an error in a few words, for a log line or a readiness report."""
    seen = error
    while (inner := seen.__cause__ or seen.__context__) is not None:
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror.lower()
    return str(seen) or type(seen).__name__
