"""Streams of the Responses API: typed events with numbers, the last of them with the whole response.

vLLM 0.32 ends with `response.completed` also when the answer is incomplete, and sends no `[DONE]`; others
use `response.incomplete` and `response.failed`. Its first two events come before it has read the prompt: they
are no first token, and the time for the first one goes on. Nothing is taken out or written anew.
"""

import re
from typing import Any

import orjson

from gateway.errors import GatewayError
from gateway.relay.events import EventStream
from gateway.usage import from_json

_FIRST = (b'"response.created"', b'"response.queued"', b'"response.in_progress"')
_LAST = ("response.completed", "response.incomplete", "response.failed")
_NUMBER = re.compile(rb'"sequence_number"\s*+:\s*+(\d{1,15})\s*+[,}]')


class Responses(EventStream):
    """Reads along one stream of events."""

    __slots__ = ("_numbered",)

    def __init__(self) -> None:
        super().__init__()
        self._numbered = b""  # the last bytes that hold an event's number

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on: all of them, at once."""
        if b'"sequence_number"' in data:
            self._numbered = data
        return super().feed(data)

    def farewell(self, error: GatewayError) -> bytes:
        """An `error` event whose number goes on from the last one.

        OpenAI's own has the flat members alone. Its libraries raise on `error`, and would hand the flat
        event to a program that most likely knows nothing of it.
        """
        said = {
            "type": "error",
            "code": error.code,
            "message": error.message,
            "param": error.param,
            "sequence_number": self._next_number(),
            **error.envelope(),
        }
        boundary = b"" if self.at_boundary else b"\n\n"
        return boundary + b"event: error\ndata: " + orjson.dumps(said) + b"\n\n"

    def _next_number(self) -> int:
        numbers = _NUMBER.findall(self._numbered)
        return int(numbers[-1]) + 1 if numbers else self.data_events

    def _telling(self, data: bytes) -> bool:
        return (
            b'"response.completed"' in data
            or b'"error"' in data
            or b'"response.incomplete"' in data
            or b'"response.failed"' in data
            or b"event: ping" in data
            or not self.data_events
        )

    def _is_idle(self, event: bytes) -> bool:
        return any(name in event for name in _FIRST) or super()._is_idle(event)

    def _read(self, said: dict[str, Any], event: bytes) -> bytes:
        kind, response = said.get("type"), said.get("response")
        if kind in _LAST:
            self.done = True
            response = response if isinstance(response, dict) else {}
            self._note_usage(from_json(response.get("usage")))
            if kind == "response.failed":
                self._note_error(response.get("error"))
        elif kind == "error":
            self._note_error(said.get("error") or said)
        elif kind is None and said.get("error"):
            self._note_error(said["error"])
        return event
