"""The account of one call: what each of its ends costs, and that it is settled once."""

import dataclasses
import gc
import time

import pytest

from gateway.errors import (
    ClientClosed,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    GatewayError,
    InvalidRequest,
    QueueFull,
    RateLimitExceeded,
    ShuttingDown,
)
from gateway.limits import Clocks, Limits
from gateway.metrics import Metrics
from gateway.relay.booking import Booking, Bookings
from gateway.relay.call import Call, Calls
from gateway.routes import BY_TEMPLATE
from gateway.settings.sections import DefaultLimits
from gateway.usage import Estimates, Record, Usage
from tests.policy import calls

NONE = DefaultLimits()
RPM, TPM = 1000, 1_000_000
KEY = dataclasses.replace(calls.key(), id="a-key", rpm=RPM, tpm=TPM)
BODY = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "How are you today?"}]}


class Account:
    """One call of a key, its booking opened, and what its limits say."""

    def __init__(self, route: str = "/v1/chat/completions", *, stream: bool = False) -> None:
        self.route = BY_TEMPLATE[route]
        self.limits = Limits(Metrics(), Clocks(ticks_ns=lambda: 0))  # no bucket refills
        self.estimates = Estimates()
        self.record = Record()
        body = {**BODY, "stream": stream}
        self.ask = self.estimates.ask(body, route=self.route, model="m", key_id=KEY.id, choices=1)

    async def open(self) -> Booking:
        """Reserved, and on its way."""
        self.call: Call = Calls().open(KEY, self.record)
        return await Bookings(self.limits, self.estimates).open(self.call, KEY, NONE, self.route, self.ask)

    def sent(self) -> None:
        """The engine has got the request."""
        self.record.sent = time.monotonic()

    @property
    def left(self) -> tuple[int, int]:
        """Requests and tokens that the key has left in its minute."""
        said = dict(self.limits.headers(KEY, NONE))
        return int(said[b"x-ratelimit-remaining-requests"]), int(said[b"x-ratelimit-remaining-tokens"])

    def assert_at_rest(self) -> None:
        """Nothing is held any more."""
        assert (self.limits.open_slots(), self.limits.reserved_tokens()) == (0, 0)


async def test_what_the_engine_told_is_what_is_paid() -> None:
    """However large the reserve was; a second settlement changes nothing."""
    account = Account()
    booking = await account.open()
    assert account.limits.reserved_tokens() == account.ask.tokens
    account.sent()
    account.record.usage = Usage(prompt=10, completion=7, cached=4, reasoning=2)
    booking.settle()
    account.record.usage = Usage(prompt=999)
    booking.settle()
    booking.close()
    booking.close()
    requests, tokens = account.left
    assert requests == RPM - 1
    assert tokens == TPM - 17
    assert not account.record.estimated
    account.assert_at_rest()


@pytest.mark.parametrize(
    ("error", "sent", "refused", "paid"),
    [
        (InvalidRequest("too long"), True, True, "request"),
        (QueueFull("full"), True, True, "nothing"),
        (EngineError("500"), True, True, "nothing"),
        (EngineUnavailable("away"), False, False, "nothing"),
        (ShuttingDown("stop"), False, False, "nothing"),
        (ClientClosed("left"), False, False, "request"),
        (EngineError("broke off"), True, False, "estimate"),
        (EngineTimeout("silent"), True, False, "estimate"),
        (ClientClosed("left"), True, False, "estimate"),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
async def test_each_failure_costs_what_was_got(
    error: GatewayError, sent: bool, refused: bool, paid: str, cut: bool
) -> None:
    """The same whether it was raised, or was the reason for which the call was cut."""
    account = Account()
    booking = await account.open()
    if sent:
        account.sent()
    account.call.refused = refused
    if cut:
        account.call.reason = error
    else:
        booking.refuse(error)
    booking.close()
    requests, tokens = account.left
    assert requests == (RPM if paid == "nothing" else RPM - 1)
    assert account.record.estimated == (paid == "estimate")
    assert (tokens < TPM) == (paid == "estimate")
    account.assert_at_rest()


async def test_a_stream_that_told_its_prompt_only_is_paid_by_both() -> None:
    """The engine's prompt tokens, and for the answer what its events are worth."""
    account = Account("/v1/messages", stream=True)
    booking = await account.open()
    account.sent()
    account.record.usage, account.record.estimated = Usage(prompt=123, completion=1), True
    account.record.data_events = 40
    booking.close()
    assert account.record.usage.prompt == 123
    assert 20 <= account.record.usage.completion <= 60
    assert account.record.estimated


@pytest.mark.parametrize("stream", [False, True])
async def test_a_whole_answer_that_told_nothing_is_paid_with_its_whole_prompt(*, stream: bool) -> None:
    """It is not taken for a call that was left before its first token."""
    account = Account(stream=stream)
    booking = await account.open()
    account.sent()
    account.call.finished = True
    booking.settle()
    booking.close()
    assert account.record.usage == Usage(prompt=account.ask.prompt)
    assert account.record.estimated


async def test_routes_that_tell_no_tokens_cost_a_request() -> None:
    """Nothing is reserved for them, nothing estimated."""
    account = Account("/tokenize")
    booking = await account.open()
    assert account.limits.reserved_tokens() == 0
    account.sent()
    booking.settle()
    booking.close()
    assert account.left == (RPM - 1, TPM)
    assert (account.record.usage, account.record.estimated) == (None, False)


@pytest.mark.parametrize("sent", [False, True])
async def test_a_fault_of_our_own_leaks_nothing(*, sent: bool) -> None:
    """Closing without a word gives everything back; what the engine has done is estimated."""
    account = Account()
    booking = await account.open()
    if sent:
        account.sent()
    booking.close()
    account.assert_at_rest()
    assert account.record.estimated == sent


async def test_a_call_that_is_over_leaves_nothing_to_the_garbage_collector() -> None:
    """Its memory is free at once: else thousands of calls a second would wait there together."""
    account, open_calls = Account(), Calls()
    bookings = Bookings(account.limits, account.estimates)
    gc.collect()
    gc.disable()
    try:
        before = alive()
        call = open_calls.open(KEY, account.record)
        booking = await bookings.open(call, KEY, NONE, account.route, account.ask)
        assert alive() == before + 1
        booking.settle()
        booking.close()
        open_calls.close(call)
        del call, booking
        assert alive() == before
    finally:
        gc.enable()


def alive() -> int:
    """How many bookings there are."""
    return sum(type(each) is Booking for each in gc.get_objects())


@pytest.mark.parametrize(
    ("route", "advice"),
    [
        (
            "/v1/chat/completions",
            "Send a max_tokens, or a lower one, ask for fewer choices, or send a shorter",
        ),
        ("/v1/responses", "Send a max_output_tokens, or a lower one, or send a shorter prompt."),
        ("/v1/messages", "Send a max_tokens, or a lower one, or send a shorter prompt."),
        ("/v1/audio/transcriptions", "Send a max_completion_tokens, or a lower one, or a shorter recording."),
        ("/v1/embeddings", "Send less text, or fewer texts at once."),
    ],
)
async def test_a_call_that_no_minute_has_room_for_is_told_how_to_shrink(route: str, advice: str) -> None:
    """By the fields that its own route reads."""
    account = Account(route)
    small = dataclasses.replace(KEY, tpm=1)
    bookings = Bookings(account.limits, account.estimates)
    ask = account.ask._replace(prompt=2)
    with pytest.raises(RateLimitExceeded, match=advice):
        await bookings.open(Calls().open(small, account.record), small, NONE, account.route, ask)
