"""How fast a model speaks, learned from calls that finished: what tells what a call had generated when cut.

A stream tells it by its data events, some of which, at its beginning and its end, carry no token. A plain
answer tells nothing before its end: there it is the time since the first token by the time between two. The
first token may have come after any of the times that it took the last streams, each as likely, since it comes
late for some while it comes soon for others. The time between two is their median, since a caller who reads
slowly makes his own as slow as he likes.
"""

import statistics
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from gateway.routes import Route

_FADE = 0.95  # with each call: about the last 20 count
_FIRST_TOKEN_SECONDS = 0.2
_TOKEN_SECONDS = 0.03
_LAST_STREAMS = 31
_MOST_TOKENS = 64  # in one event
_MOST_SHARED = 8  # as of engines that guess ahead or lag; where it is more, a key's own count tells
_FEW_TOKENS = 8  # a stream of fewer tells the time between two badly
_LEAST_SECONDS = 1e-4  # between two tokens
_SPREAD = tuple(step / 8 for step in range(1, 16))
_LEAST_SHARE = 0.3  # of a plain answer's time that is spent on tokens after the first


class Frame(NamedTuple):
    """What of a stream's data events is no token, and what of its tokens no event.

    `lead`: events without a token that begin each choice; `trail`: those that end the stream; `silent`:
    tokens without an event that end a choice which ends by itself, since the last of them is no text.
    """

    lead: int
    trail: int
    silent: int


# As vLLM 0.32 writes them, counted as `relay` counts data events; tests/real holds them against it.
_CHAT = Frame(lead=1, trail=1, silent=0)  # the role; usage
_TEXT = Frame(lead=0, trail=1, silent=0)  # usage
_RESPONSES = Frame(lead=2, trail=4, silent=1)  # item and part begun; text, part and item done, all completed
_MESSAGES = Frame(lead=2, trail=3, silent=1)  # message and block begun; block ended, counts, message ended


def frame(route: Route) -> Frame:
    """What stands around the tokens of this route's streams."""
    if route.dialect == "responses":
        return _RESPONSES
    if route.dialect == "messages":
        return _MESSAGES
    return _CHAT if route.has_template else _TEXT


class _Ratio:
    """A ratio of two sums that fade; its first guess counts as a call of so much `below`."""

    __slots__ = ("_above", "_below")

    def __init__(self, guess: float, below: float) -> None:
        self._above = guess * below
        self._below = below

    @property
    def value(self) -> float:
        return self._above / self._below

    def learn(self, above: float, below: float) -> None:
        self._above = _FADE * self._above + above
        self._below = _FADE * self._below + below


class _Line:
    """The line of seconds over tokens through plain answers: its slope, and where it begins."""

    __slots__ = ("_count", "_seconds", "_seconds_tokens", "_tokens", "_tokens_squared")

    def __init__(self) -> None:
        self._count = self._tokens = self._seconds = self._tokens_squared = self._seconds_tokens = 0.0

    def learn(self, tokens: float, seconds: float) -> None:
        self._count = _FADE * self._count + 1
        self._tokens = _FADE * self._tokens + tokens
        self._seconds = _FADE * self._seconds + seconds
        self._tokens_squared = _FADE * self._tokens_squared + tokens * tokens
        self._seconds_tokens = _FADE * self._seconds_tokens + seconds * tokens

    def fitted(self) -> tuple[float, float]:
        """Seconds before the first token and seconds for each token, by least squares, within reason."""
        tokens, seconds = self._tokens / self._count, self._seconds / self._count
        spread = self._tokens_squared / self._count - tokens * tokens
        mean = seconds / tokens
        slope = 0.9 * mean  # of answers that are all of one length
        if spread > 0.01 * tokens * tokens:
            slope = (self._seconds_tokens / self._count - tokens * seconds) / spread
        slope = max(_LEAST_SHARE * mean, min(mean, slope))
        return max(0.0, seconds - slope * tokens), max(_LEAST_SECONDS, slope)


class Events:
    """How many tokens a data event carries, by route: of one model's streams, or of one key's among them.

    A key's own count since a key whose answers hold tokens back must not make others' dear; before it has
    any on a route, `shared` stands in.
    """

    __slots__ = ("_ratios", "_shared")

    def __init__(self, shared: "Events | None" = None) -> None:
        self._ratios: dict[str, _Ratio] = {}
        self._shared = shared

    def tokens(self, route: Route, data_events: int, choices: int) -> float:
        """The tokens of all choices that a stream has carried in so many data events."""
        return max(0, data_events - frame(route).lead * choices) * self._each(route)

    def learn(self, route: Route, tokens: int, choices: int, data_events: int) -> None:
        """A stream that finished."""
        frames = frame(route)
        carrying = data_events - frames.lead * choices - frames.trail
        if carrying <= 0:
            return
        if tokens > carrying:
            tokens -= frames.silent
        ratio = self._ratios.get(route.template)
        if ratio is None:
            ratio = self._ratios[route.template] = _Ratio(self._each(route), 5.0)
        most = _MOST_SHARED if self._shared is None else _MOST_TOKENS
        ratio.learn(min(tokens, most * carrying), carrying)

    def _each(self, route: Route) -> float:
        ratio = self._ratios.get(route.template)
        if ratio is not None:
            return ratio.value
        return 1.0 if self._shared is None else self._shared._each(route)  # noqa: SLF001  another of its kind


class Pace:
    """How fast one model speaks."""

    __slots__ = ("_first_token_seconds", "_plain", "_token_seconds", "events")

    def __init__(self) -> None:
        self.events = Events()
        self._first_token_seconds: deque[float] = deque(maxlen=_LAST_STREAMS)
        self._token_seconds: deque[float] = deque(maxlen=_LAST_STREAMS)
        self._plain: _Line | None = None

    def plain_tokens(self, seconds: float) -> float:
        """The tokens of one choice that an engine has made so many seconds after it was asked, on average."""
        firsts, token_seconds = self._times()
        return statistics.fmean(max(0.0, seconds - first) for first in firsts) / token_seconds

    def prompt_share(self, seconds: float, *, is_shown: bool) -> float:
        """How much of a prompt counts so many seconds after it was sent, while no token has been seen.

        vLLM counts a prompt with its first token: this is the share of calls that have theirs by then. Where
        a first token would have been shown, there is none: what has waited no longer than others counts as
        nothing, what has waited longer than all of them has been read for as long, and counts whole.
        """
        firsts, _ = self._times()
        share = sum(first <= seconds for first in firsts) / len(firsts)
        return max(0.0, 2 * share - 1) if is_shown else share

    def learn_times(self, tokens: float, first_token_seconds: float, seconds: float) -> None:
        """When a choice's first token came, and its last, counted from sending."""
        if not 0.0 < first_token_seconds <= seconds:
            return
        self._first_token_seconds.append(first_token_seconds)
        known = self._token_seconds
        if tokens > 1 and (tokens >= _FEW_TOKENS or len(known) < _FEW_TOKENS):
            known.append(max(_LEAST_SECONDS, (seconds - first_token_seconds) / (tokens - 1)))

    def learn_plain(self, tokens: float, seconds: float) -> None:
        """A choice of a plain answer that finished."""
        if tokens > 0 and seconds > 0:
            self._plain = self._plain or _Line()
            self._plain.learn(tokens, seconds)

    def _times(self) -> tuple[Collection[float], float]:
        """Seconds until the first token, as often as each was seen, and seconds between two.

        By streams; else by plain answers, whose times to the first token are spread evenly around their mean.
        """
        if self._token_seconds:
            return self._first_token_seconds, statistics.median(self._token_seconds)
        first, between = _FIRST_TOKEN_SECONDS, _TOKEN_SECONDS
        if self._plain is not None:
            first, between = self._plain.fitted()
        return [first * share for share in _SPREAD], between
