"""One call's way to an engine and back: opened, answered or streamed, and closed on every path.

A status goes out only once the engine's is known. A non-streamed answer is read whole first, so that
an engine which dies in the middle of it is a 502 and no torn 200; a stream passes as it comes, and
one that breaks ends with an error event and without `[DONE]`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from starlette.types import Send

from gateway.engines import Body, ConnectFailed, Engine, EngineFailure, Exchange, Registry
from gateway.errors import ClientClosed, EngineError, GatewayError, Headers
from gateway.metrics import Metrics
from gateway.relay import answers, dialects
from gateway.relay.answers import Content
from gateway.relay.call import Call
from gateway.relay.caller import Caller
from gateway.relay.completions import name_twice
from gateway.relay.stream import Pace, Stream
from gateway.relay.translate import refusal, unexpected
from gateway.routes import Route
from gateway.settings import Model, Settings
from gateway.usage import Ask

STREAM_HEADERS: Headers = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]


def _nothing() -> None:
    """Nobody waits for the memory of this body."""


@dataclass(slots=True)
class Passage:
    """What is sent, what it asks for, and what the answer will look like.

    `release` is called once the body is not needed.
    """

    route: Route
    model: Model
    body: Body
    ask: Ask
    include_usage: bool
    choices: int
    content_type: bytes = b"application/json"
    release: Callable[[], None] = _nothing

    def let_go(self) -> None:
        """The engine answers, so that nothing is sent again: a stream may be long, and its body large."""
        self.body = b""
        self.release()

    @property
    def both_names(self) -> bool:
        """Whether reasoning is told under its older name too."""
        return self.model.reasoning_content and self.route.template == "/v1/chat/completions"


class Out(NamedTuple):
    """The way back to the caller: ASGI's `send` and the connection itself."""

    send: Send
    caller: Caller


class Relay:
    """Takes calls to the engines of one registry."""

    def __init__(self, registry: Registry, metrics: Metrics, settings: Settings) -> None:
        self._registry = registry
        self._inflight = metrics.traffic.inflight
        self._headers = _engine_headers(settings)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """From the next call on these times hold."""
        self._first_byte_seconds = settings.engine.first_byte_timeout_seconds
        self._pace = Pace(settings.engine.idle_timeout_seconds, settings.server.heartbeat_seconds)

    def headers(self, request_id: str, content_type: bytes) -> Headers:
        """What an engine gets of headers, the key to it among them: none of the caller's."""
        return [*self._headers, (b"content-type", content_type), (b"x-request-id", request_id.encode())]

    async def run(self, call: Call, passage: Passage, out: Out) -> None:
        """Answer the call. Raises GatewayError if nothing was sent yet; later failures end the stream."""
        model = passage.model.id
        self._inflight[model] = self._inflight.get(model, 0) + 1
        exchange: Exchange | None = None
        try:
            engine, exchange = await self._open(call, passage)
            await self._answer(call, passage, engine, exchange, out)
        finally:
            if exchange is not None:
                exchange.close()
            self._inflight[model] -= 1

    async def _open(self, call: Call, passage: Passage) -> tuple[Engine, Exchange]:
        """The request handed to the first engine that takes it."""
        headers = self.headers(call.record.request_id, passage.content_type)
        target = passage.route.template.encode()
        error: GatewayError | None = None
        for engine in self._registry.engines_of(passage.model):
            try:
                exchange = await engine.client.send(b"POST", target, headers, passage.body)
            except ConnectFailed as failure:
                error = self._failed(engine, failure)
            else:
                call.record.sent = time.monotonic()
                call.due = call.record.sent + self._first_byte_seconds
                return engine, exchange
        raise error or EngineError("No engine is configured for this model.")

    async def _answer(
        self, call: Call, passage: Passage, engine: Engine, exchange: Exchange, out: Out
    ) -> None:
        try:
            await exchange.head()
        except EngineFailure as failure:
            call.refused = isinstance(failure, ConnectFailed)  # the caller is told that no engine has it
            raise self._failed(engine, failure) from failure
        engine.note_success()
        passage.let_go()
        content = answers.content(exchange.headers)
        if exchange.status >= 300:
            call.refused = True
            body = answers.unpacked(content, await self._whole(call, engine, exchange))
            raise refusal(exchange.status, exchange.headers, body, passage.route.template, passage.model.id)
        is_stream = content.media_type == "text/event-stream"
        if exchange.status != 200 or (is_stream and content.is_packed):
            call.refused = True
            raise unexpected(exchange.status, content.media_type)
        if is_stream and passage.route.streams:
            await self._stream(call, passage, engine, exchange, content, out)
        elif content.media_type in passage.route.answers:
            await self._plain(call, passage, engine, exchange, content, out)
        else:
            call.refused = True
            raise unexpected(exchange.status, content.media_type)

    async def _whole(self, call: Call, engine: Engine, exchange: Exchange) -> bytes:
        parts = []
        try:
            while not exchange.complete:
                parts.append(await exchange.chunk())
                call.expect(self._pace.idle_seconds)
        except EngineFailure as failure:
            raise self._failed(engine, failure) from failure
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _plain(
        self, call: Call, passage: Passage, engine: Engine, exchange: Exchange, content: Content, out: Out
    ) -> None:
        raw = await self._whole(call, engine, exchange)
        call.refused = True  # until it has been found to be an answer
        body = answers.unpacked(content, raw)
        answers.check(content, body)
        call.refused, call.finished = False, True
        call.answer_bytes = len(body)
        call.record.usage = answers.usage(passage.route, content, body)
        call.settle()  # before the head, which tells what is left
        if passage.both_names:
            body = name_twice(body)
        headers = [*content.headers, (b"content-length", b"%d" % len(body))]
        await out.send({"type": "http.response.start", "status": exchange.status, "headers": headers})
        await out.send({"type": "http.response.body", "body": body})

    async def _stream(
        self, call: Call, passage: Passage, engine: Engine, exchange: Exchange, content: Content, out: Out
    ) -> None:
        headers = [*content.headers, *STREAM_HEADERS]
        events = dialects.reader(
            passage.route,
            include_usage=passage.include_usage,
            choices=passage.choices,
            both_names=passage.both_names,
        )
        stream = Stream(call, out.caller, exchange, events, self._pace)
        await out.send({"type": "http.response.start", "status": exchange.status, "headers": headers})
        error: GatewayError | None
        try:
            await stream.pass_on()
            error = None if stream.complete else _cut_short()
        except EngineFailure as failure:
            failed = self._failed(engine, failure)
            error = None if stream.complete else failed
        except asyncio.CancelledError:
            error = call.take_reason()
            if error is None:
                raise
            if stream.complete and not isinstance(error, ClientClosed):
                error = None  # an engine that never ends the body, or a stop that comes after the last word
        await stream.end(out.send, error)

    def _failed(self, engine: Engine, failure: EngineFailure) -> GatewayError:
        engine.note_failure()
        if isinstance(failure, ConnectFailed):
            return self._registry.unreachable(engine, str(failure))
        return EngineError("The engine broke off before its answer was complete.", cause=repr(failure))


def _engine_headers(settings: Settings) -> Headers:
    """What an engine gets of headers: none of the caller's."""
    headers: Headers = [
        (b"accept", b"application/json, text/event-stream"),
        (b"accept-encoding", b"identity"),
    ]
    if settings.upstream_api_key is not None:
        headers.append((b"authorization", b"Bearer " + settings.upstream_api_key.get_secret_value().encode()))
    return headers


def _cut_short() -> EngineError:
    return EngineError(
        "The engine ended the stream before the answer was complete.", cause="closed without its end"
    )
