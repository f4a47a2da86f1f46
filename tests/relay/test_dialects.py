"""Streams of the Responses and Messages APIs pass to the byte, are counted, and end so that it is noticed."""

from collections.abc import Callable
from itertools import pairwise

import orjson
import pytest
from anthropic._streaming import SSEDecoder as AnthropicDecoder
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder as OpenAIDecoder

from gateway.errors import EngineError, EngineTimeout, GatewayError, QueueFull
from gateway.relay.dialects import reader
from gateway.relay.events import EventStream
from gateway.relay.stream import HEARTBEAT
from gateway.routes import BY_TEMPLATE, OF_ENGINES
from gateway.usage import Usage
from tests.fake_engine import dialects
from tests.fake_engine.dialects import typed

ROUTES = ("/v1/responses", "/v1/messages")
STREAMS = {"/v1/responses": dialects.responses(), "/v1/messages": dialects.messages()}
COUNTS = {"/v1/responses": Usage(7, 4, 2, 1), "/v1/messages": Usage(7, 4, 2, 0)}
ERROR = EngineError("The engine broke off.")
CUTS = st.lists(st.integers(0, 5000), max_size=40)
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def read(route: str) -> EventStream:
    """A reader for this route's streams."""
    return reader(BY_TEMPLATE[route], include_usage=False, choices=1, both_names=False)


def fed(route: str, *events: bytes) -> EventStream:
    """A reader that these events have passed."""
    stream = read(route)
    for event in events:
        assert stream.feed(event) == event
    return stream


def said(event: bytes) -> dict[str, object]:
    """The JSON of an event that is named for its type."""
    name, data = event.strip().split(b"\n")
    document: dict[str, object] = orjson.loads(data.removeprefix(b"data: "))
    assert name == b"event: " + str(document["type"]).encode()
    return document


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("error", [False, True])
def test_the_last_event_is_ended_where_the_engine_did_not(route: str, error: bool) -> None:
    """A caller's library would drop it, and take an engine's error for the end of a whole answer."""
    stream, last = read(route), STREAMS[route][-1]
    if error:
        last = typed({"type": "error", "error": {"type": "api_error", "message": "out of memory"}})
    stream.feed(STREAMS[route][0])
    assert stream.feed(last[:-2]) + stream.end() == last
    assert stream.complete
    assert (stream.engine_error is not None) == error


@pytest.mark.parametrize("route", ROUTES)
@given(end=LINE_ENDS, cuts=CUTS)
def test_every_byte_passes_and_is_read_however_it_is_cut(route: str, end: bytes, cuts: list[int]) -> None:
    """Nothing is ever taken out; the end and the counts are known all the same."""
    data = b"".join(STREAMS[route]).replace(b"\n", end)
    ends = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    stream = read(route)
    seen = b"".join([stream.feed(data[a:b]) for a, b in pairwise(ends) if a < b] + [stream.end()])
    assert seen == data
    assert stream.complete
    assert stream.at_boundary
    assert stream.usage == COUNTS[route]
    assert stream.engine_error is None
    assert stream.data_events == len(STREAMS[route]) - (2 if route == "/v1/responses" else 0)


@pytest.mark.parametrize("route", ROUTES)
def test_a_line_end_cut_in_two_is_one_line_end(route: str) -> None:
    """The second half of it is no event that has begun."""
    data = STREAMS[route][0].replace(b"\n", b"\r\n")
    stream = fed(route, data[:-1], data[-1:])
    assert stream.at_boundary
    assert not stream.farewell(ERROR).startswith(b"\n")


@pytest.mark.parametrize("route", ROUTES)
def test_only_the_last_event_completes_a_stream(route: str) -> None:
    """Whatever the texts say: a name between quotes that are escaped is no name."""
    *events, last = STREAMS[route]
    word = 'He wrote "message_stop", "response.completed" and "error".'
    told = dialects.responses([word]) if route == "/v1/responses" else dialects.messages([word])
    assert not fed(route, *events).complete
    assert not fed(route, *told[:-1]).complete
    assert fed(route, *events, last).complete


def test_a_response_may_be_incomplete_and_whole() -> None:
    """The caller's cap ended it, and that is no failure."""
    stream = fed("/v1/responses", *dialects.responses(end="response.incomplete"))
    assert stream.complete
    assert stream.engine_error is None
    assert stream.usage == COUNTS["/v1/responses"]


def test_a_response_that_failed_is_the_engines_failure() -> None:
    """It has been told by the engine: nothing is to be added, and the books know."""
    failed = {**dialects.response(""), "error": {"code": "server_error", "message": "the prompt"}}
    stream = fed(
        "/v1/responses", typed({"type": "response.failed", "sequence_number": 0, "response": failed})
    )
    assert stream.complete
    assert "server_error" in str(stream.engine_error)
    assert "the prompt" not in str(stream.engine_error)


@pytest.mark.parametrize("route", ROUTES)
def test_the_engines_own_error_event_passes_and_is_noted(route: str) -> None:
    """It ends the stream; a second error would say the same again."""
    error = {"type": "error", "error": {"type": "internal_error", "message": "boom"}, "message": "boom"}
    stream = fed(route, *STREAMS[route][:-1], typed(error))
    assert stream.complete
    assert not stream.done
    assert stream.engine_error is not None


@pytest.mark.parametrize(
    ("start", "end", "counts"),
    [
        (dialects.START_COUNTS, dialects.MESSAGE_COUNTS, Usage(7, 4, 2)),
        ({**dialects.MESSAGE_COUNTS, "output_tokens": 1}, {"output_tokens": 2}, Usage(7, 4, 2)),
        ({"input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 0},
         {"input_tokens": None, "output_tokens": 2}, Usage(7, 0, 2)),
        ({"input_tokens": 7, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 0}, Usage(7, 0, 1)),
        ({"input_tokens": 7, "output_tokens": 1}, None, Usage(7, 0, 1)),
    ],
    ids=["vllm", "older", "with nulls", "zeros", "no more"],
)  # fmt: skip
def test_counts_of_a_message_are_cumulative(
    start: dict[str, int], end: dict[str, int | None] | None, counts: Usage
) -> None:
    """A later count replaces an earlier one, member by member; nothing is added up."""
    events = [typed({"type": "message_start", "message": {"usage": start}})]
    events += [typed({"type": "message_delta", "usage": end})] * 2
    assert fed("/v1/messages", *events).usage == counts


@pytest.mark.parametrize("start", [None, {}, {"input_tokens": 7, "output_tokens": 0}])
@pytest.mark.parametrize("end", [None, {}, {"output_tokens": None}, {"output_tokens": "2"}])
def test_a_message_that_told_its_end_no_count_is_not_counted(start: object, end: object) -> None:
    """What it told at its start was not yet generated."""
    *_, stop = STREAMS["/v1/messages"]
    events = [typed({"type": "message_start", "message": {"usage": start}}), STREAMS["/v1/messages"][2]]
    stream = fed("/v1/messages", *events, typed({"type": "message_delta", "usage": end}), stop)
    assert stream.usage is None or stream.outdated
    stream = fed(
        "/v1/messages", *events, typed({"type": "message_delta", "usage": {"output_tokens": 2}}), stop
    )
    assert (stream.usage is None or stream.outdated) == (not start)


@pytest.mark.parametrize("route", ROUTES)
def test_a_whole_streams_counts_are_of_the_whole(route: str) -> None:
    """What ends a stream adds nothing to them."""
    assert not fed(route, *STREAMS[route]).outdated


@pytest.mark.parametrize("error", [ERROR, EngineTimeout("Silent."), QueueFull("Full.")])
def test_a_broken_message_ends_with_anthropics_error(error: GatewayError) -> None:
    """Its type says whether to come back."""
    kind = "overloaded_error" if error.status == 503 else "api_error"
    farewell = said(fed("/v1/messages", *STREAMS["/v1/messages"][:3]).farewell(error))
    assert farewell == {"type": "error", "error": {"type": kind, "message": error.message}}


def test_a_broken_response_ends_with_an_error_whose_number_goes_on() -> None:
    """In OpenAI's flat shape, and with the object that its library raises on."""
    farewell = said(fed("/v1/responses", *STREAMS["/v1/responses"][:5]).farewell(ERROR))
    assert farewell == {
        "type": "error",
        "code": "engine_error",
        "message": ERROR.message,
        "param": None,
        "sequence_number": 5,
        "error": ERROR.envelope()["error"],
    }


@pytest.mark.parametrize(
    ("passed", "number"),
    [
        ([], 0),
        ([typed({"type": "response.created", "sequence_number": 41})], 42),
        ([typed({"type": "x", "sequence_number": 8}) + typed({"type": "x", "sequence_number": 9})], 10),
        ([typed({"type": "x", "delta": '"sequence_number":99,'})], 1),
    ],
)
def test_a_number_is_the_last_ones_successor(passed: list[bytes], number: int) -> None:
    """Where the engine began to count elsewhere too, or does not count."""
    assert said(fed("/v1/responses", *passed).farewell(ERROR))["sequence_number"] == number


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_half_written_message_event_hides_the_error_from_no_anthropic_client(cut: int) -> None:
    """It becomes a ping, which is not parsed, and the error after it is read."""
    *_, last = events = STREAMS["/v1/messages"][:3]
    stream = fed("/v1/messages", *events[:-1], last[:cut])
    text = (b"".join(events[:-1]) + last[:cut] + stream.farewell(ERROR)).decode()
    decoded = list(AnthropicDecoder().iter_bytes(iter([text.encode()])))
    *_, half, error = decoded
    assert [event.event for event in decoded[:2]] == ["message_start", "content_block_start"]
    assert half.event == "ping"
    assert (error.event, error.json()["error"]["message"]) == ("error", ERROR.message)


@pytest.mark.parametrize("route", ROUTES)
def test_a_half_written_event_is_closed_before_the_error(route: str) -> None:
    """The error does not glue itself to a line that broke off."""
    stream = fed(route, STREAMS[route][0][:-20])
    assert not stream.at_boundary
    farewell = stream.farewell(ERROR)
    assert farewell.startswith(b"\n")
    assert b"\n\nevent: error\ndata: {" in farewell


def openais(data: bytes) -> list[str]:
    """What OpenAI's library makes of these bytes."""
    return [event.data for event in OpenAIDecoder().iter_bytes(iter([data]))]


def anthropics(data: bytes) -> list[str]:
    """What Anthropic's library makes of these bytes."""
    return [event.data for event in AnthropicDecoder().iter_bytes(iter([data]))]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("decoded", [openais, anthropics])
def test_no_sdk_sees_a_heartbeat(route: str, decoded: Callable[[bytes], list[str]]) -> None:
    """Before the first event, between any two, after the last."""
    events = STREAMS[route]
    beaten = HEARTBEAT + HEARTBEAT.join(events) + HEARTBEAT
    assert decoded(beaten) == decoded(b"".join(events))


@pytest.mark.parametrize("route", [name for name in OF_ENGINES if BY_TEMPLATE[name].streams])
@pytest.mark.parametrize(
    "idle",
    [
        b"event: ping\ndata: {}\n\n",
        b'event: ping\r\ndata: {"type": "ping"}\r\n\r\n',
        b":\n\n",
        b"retry: 3\n\n",
    ],
)
def test_what_keeps_a_connection_alive_is_no_data(route: str, idle: bytes) -> None:
    """No first token, no end of the engine's silence."""
    assert fed(route, idle).data_events == 0


def test_a_response_has_not_begun_before_its_prompt_was_read() -> None:
    """vLLM sends two events at once; its first token may take as long as a first token may."""
    created, in_progress, first, *_ = STREAMS["/v1/responses"]
    assert fed("/v1/responses", created, in_progress, created + in_progress).data_events == 0
    assert fed("/v1/responses", created, in_progress, first).data_events == 1


@pytest.mark.parametrize("route", ROUTES)
def test_ids_and_comments_are_noted_and_passed(route: str) -> None:
    """After an id no heartbeat may follow, whatever the dialect."""
    stream = fed(route, b": ping\n\n")
    assert (stream.data_events, stream.has_ids) == (0, False)
    assert fed(route, b"id: 1\n" + STREAMS[route][0]).has_ids
    assert fed(route, b'event: x\nid: 1\ndata: {"type":"x"}\n\n').has_ids


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_no_json_or_no_object_passes(route: str) -> None:
    """An engine may say anything; nobody's stream ends of it here."""
    odd = [b'event: x\ndata: "message_stop"\n\n', b'event: x\ndata: {"response.completed" "error"\n\n']
    odd += [b'event: x\ndata: ["message_start", "response.failed"]\n\n', b"data: [DONE]\n\n"]
    odd += [
        typed({"type": kind, "message": 5, "response": [], "usage": 7})
        for kind in ("message_start", "message_delta")
    ]
    stream = fed(route, *odd)
    assert not stream.complete
    assert stream.usage is None


@pytest.mark.parametrize("route", [name for name in OF_ENGINES if BY_TEMPLATE[name].streams])
def test_every_route_that_streams_ends_a_broken_stream_with_an_error(route: str) -> None:
    """Read by the one rule that all clients share: an event whose JSON has a true `error`."""
    data = read(route).farewell(ERROR)
    [event] = OpenAIDecoder().iter_bytes(iter([data]))
    assert event.json()["error"]["message"] == ERROR.message
    assert b"[DONE]" not in data
