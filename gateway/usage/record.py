"""The record of one request: who, what, how long, how it ended. Filled on the way, read once at its end."""

import random
import time
from collections.abc import Callable

from gateway.errors import Headers
from gateway.usage.tokens import Usage

RECORD = "vllm_gateway.record"  # its place in an ASGI scope


class Record:
    """Facts of one request. Times are `time.monotonic()` in seconds; 0.0 means it never came to that."""

    __slots__ = (
        "cause", "data_events", "estimated", "first_token", "key_id", "limit_headers", "model",
        "queued_seconds", "read", "reason", "request_id", "route", "sent", "started", "status", "usage",
    )  # fmt: skip

    def __init__(self) -> None:
        self.request_id = f"req_{random.getrandbits(96):024x}"
        self.started = time.monotonic()
        self.read = 0.0  # the body was read
        self.sent = 0.0  # the request was handed to the engine
        self.first_token = 0.0
        self.queued_seconds = 0.0
        self.data_events = 0  # of a stream, so far
        self.route = "other"
        self.model = "other"
        self.key_id: str | None = None
        self.status = 0
        self.reason = "ok"
        self.cause: str | None = None
        self.usage: Usage | None = None
        self.estimated = False  # `usage` is what can be known of a call that told none
        self.limit_headers: Callable[[], Headers] | None = None  # as the limits of its key stand when asked

    def fail(self, reason: str, cause: str | None = None) -> None:
        """Note how it ended badly; the first word stands, since what follows is its consequence."""
        if self.reason == "ok":
            self.reason = reason
            self.cause = cause
