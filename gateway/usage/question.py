"""What an operator asks about usage, in texts alike on the command line and in the admin API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from gateway.errors import InvalidRequest, quote
from gateway.keys import times, token
from gateway.store import GROUPINGS, Grouping, Only, Period, UsageStore

PARAMETERS = ("by", "since", "until", "key", "model")
DEFAULT_SINCE = timedelta(days=7)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """Sums of a period by some grouping, of all keys and models or of one."""

    by: Grouping
    period: Period
    only: Only

    async def answer(self, store: UsageStore) -> list[dict[str, Any]]:
        """A row for each group: its name under that of the grouping, and the counts. Raises as the store."""
        found = await store.summary(self.by, self.period, self.only)
        return [{self.by: name, **sums._asdict()} for name, sums in found]


def read(given: Mapping[str, str], zone: ZoneInfo, now: datetime) -> Question:
    """The question in these texts (`PARAMETERS`); dates begin in `zone`, durations end at `now`.

    Raises InvalidRequest, whose `param` is the one to mend.
    """
    for name in given:
        if name not in PARAMETERS:
            raise InvalidRequest(f"{quote(name)} is none of {', '.join(PARAMETERS)}.", param=name[:100])
    period = _period(given, zone, now)
    return Question(
        _grouping(given.get("by", "key")), period, Only(_key(given.get("key")), _model(given.get("model")))
    )


def _grouping(text: str) -> Grouping:
    for grouping in GROUPINGS:
        if text == grouping:
            return grouping
    raise InvalidRequest(f"by must be one of {', '.join(GROUPINGS)}, not {quote(text)}.", param="by")


def _period(given: Mapping[str, str], zone: ZoneInfo, now: datetime) -> Period:
    since = _moment("since", given["since"], zone, now) if "since" in given else now - DEFAULT_SINCE
    until = _moment("until", given["until"], zone, now) if "until" in given else None
    if until is not None and until <= since:
        raise InvalidRequest(
            f"until ({times.as_text(until)}) must be later than since ({times.as_text(since)}).",
            param="until",
        )
    if since > now:
        raise InvalidRequest(f"since ({times.as_text(since)}) must be in the past.", param="since")
    return Period(since, until)


def _moment(name: str, text: str, zone: ZoneInfo, now: datetime) -> datetime:
    length = times.duration(text)
    # A plus sign that was not written as %2B in a URL is a space by now.
    found = (
        now - length
        if length is not None
        else times.moment(text) or times.moment(text.replace(" ", "+")) or _midnight(text, zone)
    )
    if found is None:
        raise InvalidRequest(
            f"{name} must be how long ago (7d, 24h, 30m), a date (2026-11-30) or a time with its offset "
            f"(2026-11-30T12:00:00Z), not {quote(text)}.",
            param=name,
        )
    return found


def _midnight(text: str, zone: ZoneInfo) -> datetime | None:
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _model(text: str | None) -> str | None:
    """Bytes of a command line that are no UTF-8 come as halves of characters, which no database takes."""
    if text is not None and not text.isascii() and text != text.encode(errors="replace").decode():
        raise InvalidRequest("model must be a text in UTF-8.", param="model")
    return text


def _key(text: str | None) -> str | None:
    if text is None:
        return None
    key_id = token.id_of(text)
    if key_id is None:
        # Not repeated: it may be a secret.
        raise InvalidRequest(
            "key must be the id of a key: 12 characters of a-z0-9, with or without 'sk-gw-'.", param="key"
        )
    return key_id
