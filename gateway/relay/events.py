"""A stream of server-sent events as it passes: what it says is read, what it is stays.

Bytes go on as they came, whatever their chunking and line ends. Three things are looked for, and only
an event that may hold one is parsed: token usage, the end of a choice, the engine's own error. One
event is taken out, the one whose `choices` is `[]` and whose `usage` is an object, if the caller did
not ask for it: it is held from the moment its first bytes could be that event until it is whole.
Engines that put usage on every chunk are the one case in which chunks are written anew.
"""

import re
from typing import Any

import orjson

from gateway.relay.translate import described
from gateway.usage import Usage, from_json

MAX_HELD_BYTES = 65_536
MAX_INSPECTED_BYTES = 16_777_216

# Atomic: \r\n is one line end and never two.
_EVENT_END = re.compile(rb"(?>\r\n|\n|\r){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_CHOICE_SEEN = re.compile(rb'"choices"\s*:\s*\[\s*[^\]\s]')


class EventStream:
    """Reads along one stream. `feed` and `end` answer the bytes to pass on.

    `include_usage`: the caller asked for the usage event. `choices`: how many choices must finish
    before the stream counts as complete without `[DONE]`.
    """

    __slots__ = (
        "_event",
        "_finished",
        "_include_usage",
        "_passed",
        "_rewrite",
        "_wanted",
        "data_events",
        "done",
        "engine_error",
        "has_ids",
        "usage",
    )  # fmt: skip

    def __init__(self, *, include_usage: bool, choices: int) -> None:
        self._include_usage = include_usage
        self._wanted = choices
        self._finished: set[int] = set()
        self._event = bytearray()  # the event that is not whole yet
        self._passed = 0  # how many of its bytes went on already
        self._rewrite = False
        self.data_events = 0
        self.done = False
        self.has_ids = False
        self.engine_error: str | None = None
        self.usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether the caller has a whole answer: `[DONE]`, or every choice with its finish reason."""
        return self.done or (len(self._finished) >= self._wanted and self.engine_error is None)

    @property
    def at_boundary(self) -> bool:
        """Whether the caller's last byte ended an event, so that another may follow."""
        return self._passed == 0

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on now; may be empty."""
        if (
            not self._event
            and data.startswith(b"data:")
            and data.endswith(b"\n\n")
            and not self._rewrite
            and b"\nid:" not in data
            and not _telling(data)
        ):
            self.data_events += 1 + data.count(b"\ndata:")
            return data
        return self._feed_slowly(data)

    def end(self) -> bytes:
        """The engine closed: the last bytes to pass on, if what was held is worth showing."""
        event, held = bytes(self._event), not self._passed
        if not event.strip():
            return b""
        self._inspect(event)
        return event if held and self.done else b""

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
        self.data_events += _data_lines(event)
        self.has_ids = self.has_ids or _has_id(event)
        shown = self._inspect(event) if self._rewrite or _telling(event) else event
        return event[passed:] if passed else shown

    def _partial(self, passed: int) -> bytes:
        """What may be passed of an event that is not whole yet."""
        if not passed and self._may_be_usage():
            return b""
        rest = bytes(self._event[passed:])
        if len(self._event) > MAX_INSPECTED_BYTES:
            del self._event[:-3]  # no engine says this much in one event: relay it unread
        self._passed = len(self._event)
        return rest

    def _may_be_usage(self) -> bool:
        event = self._event
        if self._rewrite:
            return True
        if self._include_usage or not event or event[0] == ord(":") or len(event) > MAX_HELD_BYTES:
            return False
        return _CHOICE_SEEN.search(event) is None

    def _inspect(self, event: bytes) -> bytes:
        """Read what an event says; the event as the caller shall see it, b"" to take it out."""
        payload = _payload(event)
        if payload.startswith(b"[DONE]"):
            self.done = True
            return event
        try:
            chunk = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return event
        return self._read(chunk, event) if isinstance(chunk, dict) else event

    def _read(self, chunk: dict[str, Any], event: bytes) -> bytes:
        error = chunk.get("error")
        if error:
            self.engine_error = f"error event{described(error if isinstance(error, dict) else {})}"
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("finish_reason") is not None:
                self._finished.add(choice.get("index", 0))
        usage = from_json(chunk.get("usage"))
        if usage is None:
            return event
        self.usage = usage
        if self._include_usage:
            return event
        if choices == []:
            return b""
        self._rewrite = True
        return b"data: " + orjson.dumps({k: v for k, v in chunk.items() if k != "usage"}) + b"\n\n"


def _telling(data: bytes) -> bool:
    """Whether these bytes may hold usage, a finish reason, an error or the end: four quick looks."""
    return (
        (b'"usage"' in data and data.count(b'"usage"') != data.count(b'"usage":null'))
        or data.count(b'"finish_reason"') != data.count(b'"finish_reason":null')
        or b'"error"' in data
        or b"[DONE]" in data
    )


def _has_id(event: bytes) -> bool:
    return event.startswith(b"id:") or b"\nid:" in event or b"\rid:" in event


def _data_lines(event: bytes) -> int:
    return event.startswith(b"data:") + event.count(b"\ndata:") + event.count(b"\rdata:")


def _payload(event: bytes) -> bytes:
    """The data of one event, its `data:` lines joined as the standard says."""
    lines = (line for line in _LINE_END.split(event) if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
