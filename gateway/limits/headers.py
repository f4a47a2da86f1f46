"""The `x-ratelimit-*` headers, as OpenAI's API has them: durations are written as Go writes them."""

from gateway.errors import Headers
from gateway.limits.bucket import Bucket

MILLISECOND_NS = 1_000_000

REQUESTS = (b"x-ratelimit-limit-requests", b"x-ratelimit-remaining-requests", b"x-ratelimit-reset-requests")
TOKENS = (b"x-ratelimit-limit-tokens", b"x-ratelimit-remaining-tokens", b"x-ratelimit-reset-tokens")


def of(requests: Bucket | None, tokens: Bucket | None, now_ns: int, *, runs: bool) -> Headers:
    """Limit, what remains in whole numbers, and the time until all of it is there again.

    `runs`: a call of the key is running. Its request is never told as remaining, however slow its answer.
    """
    out: Headers = []
    for (limit, remaining, reset), bucket in ((REQUESTS, requests), (TOKENS, tokens)):
        if bucket is not None:
            left, full_in_ns = bucket.standing(now_ns)
            if runs and bucket is requests and left == bucket.limit:
                left -= 1
            full_in = duration(-(-full_in_ns // MILLISECOND_NS)).encode()
            out += ((limit, b"%d" % bucket.limit), (remaining, b"%d" % left), (reset, full_in))
    return out


def duration(milliseconds: int) -> str:
    """As Go's `Duration.String` prints it: `12ms`, `1.5s`, `6m0s`, `1h0m0s`."""
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds, fraction = divmod(rest, 1000)
    text = f"{seconds}.{fraction:03}".rstrip("0") + "s" if fraction else f"{seconds}s"
    if not minutes:
        return text
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
