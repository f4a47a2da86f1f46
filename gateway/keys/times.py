"""Moments and durations as operators write them: `30d`, or RFC 3339 with its offset."""

import re
from datetime import UTC, datetime, timedelta

LONGEST = timedelta(days=36500)
EXAMPLES = "a duration such as '30d' (s, m, h, d, w) or a time such as '2027-01-31T00:00:00Z'"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def duration(text: str) -> timedelta | None:
    """The duration that `text` says; None if it says none, or one of over a hundred years."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    try:
        length = timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        return None
    return length if length <= LONGEST else None


def moment(text: str) -> datetime | None:
    """The moment in UTC that `text` says in RFC 3339; None if it says none."""
    if _RFC_3339.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def as_text(moment: datetime | None) -> str | None:
    """A moment in RFC 3339: UTC, with milliseconds if it has any."""
    if moment is None:
        return None
    precision = "milliseconds" if moment.microsecond >= 1000 else "seconds"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)
