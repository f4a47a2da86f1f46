"""One request, one count and one line, whatever happens inside; and whose address the line holds."""

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from gateway.errors import Headers
from gateway.metrics import Metrics
from gateway.observe import Networks, Observe
from gateway.usage import RECORD, Usage
from tests.callers import CHAT
from tests.usage import ledgers

LOOPBACK: Networks = (ip_network("127.0.0.1"), ip_network("::1"))
PRIVATE: Networks = (*LOOPBACK, ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def scope(headers: Headers = [], client: tuple[str, int] | None = ("127.0.0.1", 1)) -> Scope:  # noqa: B006  read only
    """A request's scope."""
    return {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": client}


async def answering(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers 200."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": b""})


async def nothing() -> Message:
    return {"type": "http.disconnect"}


async def observed(observe: Observe, request: Scope) -> tuple[list[Message], list[dict[str, Any]]]:
    """What was sent, and the lines that were logged."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with capture_logs() as lines:
        await observe(request, nothing, send)
    return sent, [dict(line) for line in lines]


def observing(app: ASGIApp, metrics: Metrics | None = None) -> Observe:
    """The layer under test around an application."""
    metrics = metrics or Metrics()
    return Observe(app, metrics, ledgers.unopened(metrics))


def requests(metrics: Metrics) -> dict[tuple[str, str], float]:
    """How many requests there were, by class of status and reason."""
    return {
        (sample.labels["status_class"], sample.labels["reason"]): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "gateway_requests_total"
    }


@pytest.mark.parametrize(
    ("peer", "chain", "trusted", "address"),
    [
        ("127.0.0.1", [], LOOPBACK, "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.9"], LOOPBACK, "203.0.113.9"),
        ("127.0.0.1", ["203.0.113.9"], (), "127.0.0.1"),
        ("198.51.100.1", ["203.0.113.9"], LOOPBACK, "198.51.100.1"),
        ("127.0.0.1", ["1.1.1.1, 203.0.113.9"], LOOPBACK, "203.0.113.9"),
        ("127.0.0.1", ["1.1.1.1, 203.0.113.9, 10.0.0.7"], LOOPBACK, "10.0.0.7"),
        ("127.0.0.1", ["1.1.1.1, 203.0.113.9, 10.0.0.7"], PRIVATE, "203.0.113.9"),
        ("127.0.0.1", ["1.1.1.1", "203.0.113.9", "10.0.0.7"], PRIVATE, "203.0.113.9"),
        ("10.0.0.7", ["10.1.1.1"], PRIVATE, "10.1.1.1"),
        ("::1", ["2001:db8::1"], LOOPBACK, "2001:db8::1"),
        ("fd00::2", ["2001:DB8:0::1"], PRIVATE, "2001:db8::1"),
        ("127.0.0.1", ["unknown"], LOOPBACK, "127.0.0.1"),
        ("127.0.0.1", [""], LOOPBACK, "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.9, evil\x00, 10.0.0.7"], PRIVATE, "10.0.0.7"),
        (None, ["203.0.113.9"], LOOPBACK, None),
    ],
)
async def test_the_address_is_what_the_last_trusted_hop_saw(
    peer: str | None, chain: list[str], trusted: Networks, address: str | None
) -> None:
    """A caller may write anything into the header, but only to the left of what a proxy of ours adds."""
    observe = observing(answering)
    observe.log_all, observe.trusted_proxies = True, trusted
    headers = [(b"x-forwarded-for", value.encode()) for value in chain]
    _, [line] = await observed(observe, scope(headers, (peer, 1) if peer else None))
    assert line["address"] == address


async def test_good_calls_are_logged_only_if_the_operator_wants_all() -> None:
    """The usage row is the record."""
    observe = observing(answering)
    assert (await observed(observe, scope()))[1] == []
    observe.log_all = True
    [line] = (await observed(observe, scope()))[1]
    assert (line["event"], line["status"], line["reason"]) == ("request", 200, "ok")


async def test_failures_are_always_logged() -> None:
    """With the cause that the caller does not see."""

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        scope[RECORD].fail("engine_error", "the cause")
        await answering(scope, receive, send)

    [line] = (await observed(observing(failing), scope()))[1]
    assert (line["reason"], line["cause"]) == ("engine_error", "the cause")


async def test_headers_of_the_application_stay_and_ours_are_added() -> None:
    """Once, on the head alone."""
    sent, _ = await observed(observing(answering), scope())
    names = [name for name, _ in sent[0]["headers"]]
    assert names == [b"a", b"x-request-id", b"openai-processing-ms"]
    assert "headers" not in sent[1]


async def test_limits_are_told_as_they_stand_when_the_answer_begins() -> None:
    """Not as they stood when the key was found: the call itself has taken its share by then."""
    left = [3]

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        scope[RECORD].limit_headers = lambda: [(b"x-ratelimit-remaining-requests", b"%d" % left[0])]
        left[0] -= 1
        await answering(scope, receive, send)

    sent, _ = await observed(observing(limited), scope())
    assert dict(sent[0]["headers"])[b"x-ratelimit-remaining-requests"] == b"2"


async def test_calls_of_engines_with_a_key_are_noted_and_no_others() -> None:
    """A stranger cannot make the database grow, and a list of models is no use of one."""
    metrics = Metrics()
    ledger = ledgers.unopened(metrics)

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        record = scope[RECORD]
        record.key_id, record.route = scope["who"]
        await answering(scope, receive, send)

    observe = Observe(named, metrics, ledger)
    noted = []
    for who in (("a-key", CHAT), (None, CHAT), ("a-key", "/v1/models"), ("a-key", "other")):
        await observed(observe, {**scope(), "who": who})
        noted.append(ledger.pending)
    assert noted == [1, 1, 1, 1]


@pytest.mark.parametrize("failure", [ValueError, asyncio.CancelledError])
async def test_a_request_that_crashes_or_is_cancelled_is_counted_all_the_same(
    failure: type[BaseException],
) -> None:
    """Exactly once, and never as a success; the exception goes on."""
    metrics = Metrics()

    async def crashing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise failure

    with pytest.raises(failure):
        await observed(observing(crashing, metrics), scope())
    assert requests(metrics) == {("4xx", "client_closed"): 1}


async def test_requests_and_tokens_count_for_the_key_that_used_them() -> None:
    """Without a key there is nobody to count for."""
    metrics = Metrics()

    async def using(scope: Scope, receive: Receive, send: Send) -> None:
        record = scope[RECORD]
        record.usage = Usage(prompt=7, completion=3)
        record.key_id, record.model = "a-key", "m"
        await answering(scope, receive, send)

    await observed(observing(using, metrics), scope())
    labels = {"key": "a-key", "model": "m", "kind": "prompt"}
    assert metrics.registry.get_sample_value("gateway_tokens_total", labels) == 7
    labels = {"key": "a-key", "status_class": "2xx"}
    assert metrics.registry.get_sample_value("gateway_key_requests_total", labels) == 1
