"""Streams of the Messages API: `message_start`, blocks, `message_delta` with the counts, `message_stop`.

Nothing is taken out or written anew. Counts are cumulative, and a later one stands for an earlier: vLLM
tells the whole prompt at the start and how much of it was cached only at the end. How much was generated
by then each of them must tell itself.
"""

from typing import Any

from gateway.errors import GatewayError, anthropic
from gateway.relay.events import EventStream
from gateway.usage import from_json


class Messages(EventStream):
    """Reads along one stream of events."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, Any] = {}

    def farewell(self, error: GatewayError) -> bytes:
        """An `error` event. A half-written event is made a `ping`, which Anthropic's clients never parse."""
        boundary = b"" if self.at_boundary else b"\nevent: ping\n\n"
        return boundary + b"event: error\ndata: " + anthropic.body(error) + b"\n\n"

    def _telling(self, data: bytes) -> bool:
        return (
            b'"message_delta"' in data
            or b'"message_start"' in data
            or b'"message_stop"' in data
            or b'"error"' in data
            or b"event: ping" in data
        )

    def _read(self, said: dict[str, Any], event: bytes) -> bytes:
        match said.get("type"):
            case "message_start":
                message = said.get("message")
                self._count(message.get("usage") if isinstance(message, dict) else None)
            case "message_delta":
                self._count(said.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                self._note_error(said.get("error"))
        return event

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._counts |= {name: value for name, value in usage.items() if value is not None}
            self._note_usage(from_json({**self._counts, "output_tokens": usage.get("output_tokens")}))
