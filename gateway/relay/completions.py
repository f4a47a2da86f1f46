"""Streams of chat and text completions: chunks of choices, usage in one that has none, `[DONE]`.

One event is taken out, the one whose `choices` is `[]` and whose `usage` is an object, if the caller did
not ask for it: it is held from the moment its first bytes could be that event until it is whole.
Engines that put usage on every chunk, and callers who want `reasoning` under its older name too, are the
two cases in which chunks are written anew.
"""

import re
from typing import Any, ClassVar

import orjson

from gateway.errors import GatewayError
from gateway.relay.events import EventStream
from gateway.usage import from_json

MAX_HELD_BYTES = 65_536

_CHOICE_SEEN = re.compile(rb'"choices"\s*:\s*\[\s*[^\]\s]')
# In raw JSON nothing but a member's name can stand between unescaped quotes before a colon.
_REASONING = re.compile(rb'"reasoning"\s*+:\s*+("(?:[^"\\]|\\.)*+"|null)')


class Completions(EventStream):
    """Reads along one stream of chunks.

    `include_usage`: the caller asked for the usage event. `choices`: how many choices must finish before
    the stream counts as complete without `[DONE]`, None: it never does.
    """

    __slots__ = ("_finished", "_include_usage", "_wanted")
    opening: ClassVar[bytes] = b"data:"
    opens_with_data: ClassVar[int] = 1
    last_words: ClassVar[int] = 0  # `[DONE]` is no data event

    def __init__(self, *, include_usage: bool, choices: int | None) -> None:
        super().__init__()
        self._include_usage = include_usage
        self._wanted = choices
        self._finished: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the caller has a whole answer: `[DONE]`, or every choice with its finish reason."""
        if self.done or self._wanted is None:
            return self.done
        return len(self._finished) >= self._wanted and self.engine_error is None

    def farewell(self, error: GatewayError) -> bytes:
        """One error event in OpenAI's shape, and no `[DONE]`."""
        return (b"" if self.at_boundary else b"\n\n") + b"data: " + error.body() + b"\n\n"

    def _telling(self, data: bytes) -> bool:
        return (
            (b'"usage"' in data and data.count(b'"usage"') != data.count(b'"usage":null'))
            or data.count(b'"finish_reason"') != data.count(b'"finish_reason":null')
            or b'"error"' in data
            or b"[DONE]" in data
        )

    def _holds(self) -> bool:
        event = self._event
        if super()._holds():
            return True
        if self._include_usage or not event or event[0] == ord(":") or len(event) > MAX_HELD_BYTES:
            return False
        return _CHOICE_SEEN.search(event) is None

    def _is_idle(self, event: bytes) -> bool:
        return event.startswith((b"data: [DONE]", b"data:[DONE]")) or super()._is_idle(event)

    def _note_done(self) -> None:
        self.done = True

    def _read(self, said: dict[str, Any], event: bytes) -> bytes:
        error = said.get("error")
        if error:
            self._note_error(error)
        choices = said.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("finish_reason") is not None:
                index = choice.get("index")
                self._finished.add(index if type(index) is int else 0)
        usage = said.get("usage")
        if not isinstance(usage, dict):
            return event
        self._note_usage(from_json(usage))
        if self._include_usage:
            return event
        if choices == []:
            return b""
        self._whole_only = True
        return b"data: " + orjson.dumps({k: v for k, v in said.items() if k != "usage"}) + b"\n\n"


class Reasoned(Completions):
    """Reads along one stream of chunks and tells reasoning by its older name too."""

    __slots__ = ()

    def __init__(self, *, include_usage: bool, choices: int | None) -> None:
        super().__init__(include_usage=include_usage, choices=choices)
        self._whole_only = True

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on now; may be empty."""
        return name_twice(super().feed(data))


class Transcript(Completions):
    """Reads along a transcription: chunks as above, or events of OpenAI's own that end without `[DONE]`.

    A long recording is answered in parts, each with a finish reason, so that those tell nothing of the end.
    """

    __slots__ = ()

    def _telling(self, data: bytes) -> bool:
        return b'"transcript.text.done"' in data or super()._telling(data)

    def _read(self, said: dict[str, Any], event: bytes) -> bytes:
        if said.get("type") != "transcript.text.done":
            return super()._read(said, event)
        self.done = True
        self._note_usage(from_json(said.get("usage")))
        return event


def name_twice(data: bytes) -> bytes:
    """Chat answers or whole chunks with `reasoning` under the name `reasoning_content` too.

    All other bytes stay; an engine that uses both names, or the older one, is left as it is.
    """
    if b'"reasoning"' not in data or b'"reasoning_content"' in data:
        return data
    return _REASONING.sub(rb'\g<0>,"reasoning_content":\1', data)
