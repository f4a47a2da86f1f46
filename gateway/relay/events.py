"""A stream of server-sent events as it passes: what it says is read, what it is stays.

Bytes go on as they came, whatever their chunking and line ends. Only an event that may tell something is
parsed: what that is, how a stream ends and how its failure is told differ by dialect and stand in
`completions`, `responses` and `messages`; which of them a route speaks, in `dialects`.
"""

import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import orjson

from gateway.errors import GatewayError
from gateway.relay.translate import described
from gateway.usage import Usage

MAX_INSPECTED_BYTES = 16_777_216

# Atomic: \r\n is one line end and never two.
_EVENT_END = re.compile(rb"(?>\r\n|\n|\r){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_PING = re.compile(rb"(?:^|[\r\n])event: ?ping[\r\n]")


class EventStream(ABC):
    """Reads along one stream, in the base of all dialects. `feed` and `end` answer the bytes to pass on.

    A dialect says what may tell (`_telling`), reads it (`_read`), and writes its `farewell`. `data_events`
    counts what the engine has said; what keeps a connection alive is none of it.
    """

    __slots__ = (
        "_counted_at",
        "_event",
        "_passed",
        "_whole_only",
        "data_events",
        "done",
        "engine_error",
        "has_ids",
        "usage",
    )  # fmt: skip
    opening: ClassVar[bytes] = b"event:"  # how this dialect's events begin
    opens_with_data: ClassVar[int] = 0
    last_words: ClassVar[int] = 1  # data events that may follow the last counts and add nothing to them

    def __init__(self) -> None:
        self._event = bytearray()  # the event that is not whole yet
        self._passed = 0  # how many of its bytes went on already
        self._whole_only = False  # events go on only once they are whole, since they may be changed
        self.data_events = 0
        self.done = False
        self.has_ids = False
        self.engine_error: str | None = None
        self.usage: Usage | None = None
        self._counted_at = 0  # how many data events there were when the engine last counted

    @property
    def outdated(self) -> bool:
        """Whether the engine said more after it had counted, so that `usage` is not of the whole."""
        return self.usage is not None and self.data_events > self._counted_at + self.last_words

    @property
    def complete(self) -> bool:
        """Whether nothing is left to say: the answer is whole, or the engine has told that it is not."""
        return self.done or self.engine_error is not None

    @property
    def at_boundary(self) -> bool:
        """Whether the caller's last byte ended an event, so that another may follow."""
        return self._passed == 0 or not self._event.strip()  # the \n of a \r\n that was cut in two

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on now; may be empty."""
        if (
            not self._event
            and data.startswith(self.opening)
            and data.endswith(b"\n\n")
            and b"\nid:" not in data
            and not self._telling(data)
        ):
            self.data_events += self.opens_with_data + data.count(b"\ndata:")
            return data
        return self._feed_slowly(data)

    def end(self) -> bytes:
        """The engine closed: the last bytes to pass on.

        An event that lacks its blank line and yet ends the answer gets it: callers would not see it without.
        """
        event, held = bytes(self._event), not self._passed
        if not event.strip():
            return b""
        before = (self.done, self.complete)
        shown = self._inspect(event)
        if before == (self.done, self.complete):
            return b""
        return (shown if held else b"") + b"\n\n"

    @abstractmethod
    def farewell(self, error: GatewayError) -> bytes:
        """What ends a broken stream so that the caller's library raises; closes a half-written event."""

    @abstractmethod
    def _telling(self, data: bytes) -> bool:
        """Whether these bytes may hold what has to be read: a few quick looks."""

    @abstractmethod
    def _read(self, said: dict[str, Any], event: bytes) -> bytes:
        """Read one event's JSON; the event as the caller shall see it, b"" to take it out."""

    def _is_idle(self, event: bytes) -> bool:
        """Whether this event says only that the engine is there, as a comment would."""
        return _PING.search(event) is not None

    def _holds(self) -> bool:
        """Whether the event that is not whole yet must wait, none of its bytes being passed."""
        return self._whole_only and len(self._event) <= MAX_INSPECTED_BYTES

    def _feed_slowly(self, data: bytes) -> bytes:
        unread = max(0, len(self._event) - 3)  # a blank line may have begun in the bytes before
        buffered = self._event
        buffered += data
        passed, out, start = self._passed, [], 0
        self._passed = 0
        for end in _EVENT_END.finditer(buffered, unread):
            out.append(self._whole(bytes(buffered[start : end.end()]), passed))
            start, passed = end.end(), 0
        del buffered[:start]
        out.append(self._partial(passed))
        return b"".join(out)

    def _whole(self, event: bytes, passed: int) -> bytes:
        """What is left to pass of an event that is whole now."""
        if not self._is_idle(event):
            self.data_events += _data_lines(event)
        self.has_ids = self.has_ids or _has_id(event)
        shown = self._inspect(event) if self._telling(event) else event
        return event[passed:] if passed else shown

    def _partial(self, passed: int) -> bytes:
        """What may be passed of an event that is not whole yet."""
        if not passed and self._holds():
            return b""
        rest = bytes(self._event[passed:])
        if len(self._event) > MAX_INSPECTED_BYTES:
            del self._event[:-3]  # no engine says this much in one event: relay it unread
        self._passed = len(self._event)
        return rest

    def _inspect(self, event: bytes) -> bytes:
        """Read what an event says; the event as the caller shall see it."""
        payload = _payload(event)
        if payload.startswith(b"[DONE]"):
            self._note_done()
            return event
        try:
            said = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return event
        return self._read(said, event) if isinstance(said, dict) else event

    def _note_done(self) -> None:  # noqa: B027  a hook: most dialects have nothing to do there
        """`[DONE]` was seen; it means something in one dialect alone."""

    def _note_usage(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage.after(self.usage)
            self._counted_at = self.data_events

    def _note_error(self, error: Any) -> None:
        self.engine_error = f"error event{described(error if isinstance(error, dict) else {})}"


def _has_id(event: bytes) -> bool:
    return event.startswith(b"id:") or b"\nid:" in event or b"\rid:" in event


def _data_lines(event: bytes) -> int:
    return event.startswith(b"data:") + event.count(b"\ndata:") + event.count(b"\rdata:")


def _payload(event: bytes) -> bytes:
    """The data of one event, its `data:` lines joined as the standard says."""
    lines = (line for line in _LINE_END.split(event) if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
