"""A fault of the gateway's own: the caller gets a 500 in our shape and an id, and not a word of the cause.

No call over the wire provokes one, so what stands around the handlers is given handlers that fail.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from starlette.types import Message, Scope

from gateway.errors import EngineError, Headers
from gateway.metrics import Metrics
from gateway.observe import Observe
from gateway.public import Live, Public, api
from gateway.relay import CALLER
from gateway.usage import Record
from tests.callers import CHAT, error_of
from tests.usage import ledgers

SECRET = "the-words-of-a-prompt"


@dataclass
class Connection:
    """The server's side of one request: what was sent, and whether the connection was ended."""

    sent: list[Message] = field(default_factory=list)
    aborted: bool = False

    async def receive(self) -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def abort(self) -> None:
        self.aborted = True

    def scope(self, path: str, headers: Headers) -> Scope:
        """A request's scope."""
        return {
            "type": "http", "method": "GET" if path == "/v1/models" else "POST", "path": path,
            "raw_path": path.encode(),
            "headers": headers, "query_string": b"", "root_path": "", "http_version": "1.1",
            "client": ("::1", 1),
            "state": {}, "extensions": {CALLER: self},
        }  # fmt: skip


class Failing:
    """Takes the place of the live routes and of a key directory: fails, before or after the answer began."""

    def __init__(self, failure: Exception, *, begun: bool = False) -> None:
        self.failure = failure
        self.begun = begun
        self.calls = SimpleNamespace(draining=False)
        self.rules = SimpleNamespace(settings=SimpleNamespace(server=SimpleNamespace(cors_origins=())))
        self.directory = SimpleNamespace(find=lambda _token: SimpleNamespace(id="a-key"))

    def identify(self, record: Record, key: Any) -> None:
        """As the live one does."""
        record.key_id = key.id

    @property
    def registry(self) -> Any:
        raise self.failure

    async def __call__(self, _scope: Scope, _receive: Any, send: Any, _record: Any) -> None:
        if self.begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise self.failure


async def served(live: Failing, path: str = CHAT) -> tuple[Connection, Metrics]:
    """What comes of one request."""
    connection, metrics = Connection(), Metrics()
    standing_in = cast(Live, live)
    app = Observe(Public(standing_in, api.build(standing_in, 0)), metrics, ledgers.unopened(metrics))
    await app(connection.scope(path, [(b"x-api-key", b"k")]), connection.receive, connection.send)
    return connection, metrics


def failures(metrics: Metrics, reason: str) -> float:
    """How many requests ended so."""
    labels = {"status_class": "5xx", "reason": reason, "model": "other"}
    series = metrics.registry.collect()
    return sum(
        sample.value
        for family in series
        for sample in family.samples
        if sample.name == "gateway_requests_total" and labels.items() <= sample.labels.items()
    )


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
async def test_an_exception_is_a_500_that_says_nothing_of_it(path: str) -> None:
    """Live routes and FastAPI's alike: the usual shape, the request id, no class, no text, no path."""
    connection, metrics = await served(Failing(ValueError(SECRET)), path)
    start, *bodies = connection.sent
    headers = dict(start["headers"])
    text = b"".join(message["body"] for message in bodies)
    error = error_of(orjson.loads(text))
    assert start["status"] == 500
    assert headers[b"content-type"] == b"application/json"
    assert (error["code"], error["type"]) == ("internal_error", "server_error")
    assert headers[b"x-request-id"].decode() in error["message"]
    for word in (SECRET, "ValueError", "Traceback", ".py"):
        assert word not in text.decode()
    assert failures(metrics, "internal_error") == 1


async def test_an_exception_on_a_messages_route_is_told_in_anthropics_shape() -> None:
    """As little of it, and the id beside it."""
    connection, _ = await served(Failing(ValueError(SECRET)), "/v1/messages")
    start, *bodies = connection.sent
    document = orjson.loads(b"".join(message["body"] for message in bodies))
    assert start["status"] == 500
    assert document["error"]["type"] == "api_error"
    assert document["request_id"] == dict(start["headers"])[b"x-request-id"].decode()
    assert SECRET not in str(document)


@pytest.mark.parametrize("failure", [ValueError(SECRET), EngineError("too late")])
async def test_what_fails_after_the_answer_began_cuts_the_connection(failure: Exception) -> None:
    """A second status would be read as a part of the first answer, and a clean end as its completion."""
    connection, _ = await served(Failing(failure, begun=True))
    assert len(connection.sent) == 1
    assert connection.aborted
